"""`policyengine tune`: values of params, and weights, found by playing recordings and scenarios under them. Also what
plays many: `simulate --seeds`, and `plan` of several recordings.

| file | |
|---|---|
| `objective` | what is wanted: expressions over the figures of `plan`; a mean and how sure it is |
| `dimensions` | what may be varied |
| `subject` | the policy, and its text with other values |
| `judging` | what it is played on; one candidate on some workloads, in any process |
| `workers` | processes of this machine, or of a Ray cluster |
| `search` | the candidates one after the other, kept in a study file |
| `session` | all of it: defaults, search, profiles, what was held out |
| `sweep` | many plays without a search: seeds of a scenario, recordings under two policies |
"""
