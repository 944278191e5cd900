"""Opinions about policies that are free of errors: what can never happen, costs too much, or misleads.

`run` is the way in. A rule is a file of `rules`: its docstring is its page, beside its message and its logic. What
rules share: `subject` (a policy, as written and as checked), `bounds` and `truth` (what can be told without running),
`cost` (what a cycle takes), `suppressions` (comments that allow a finding), `settings` (severities, budget).
"""
