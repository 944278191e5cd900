"""What groups of pods experience on nodes, as a reward from 0 to 1 that policies read from the nodes' annotations.

`commands.rewards` imports it. It imports `kube`, the decoding of `cluster`, and nothing else of `server`.
"""
