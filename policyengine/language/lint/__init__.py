"""Opinions about policies that are free of errors: what can never happen, costs too much, or misleads.

`linter.lint` asks every rule of `rules` about a `rule.Subject`: a policy, as written and as checked. Imported by
`kube`, `server` and `commands`; imports the rest of `language`.
"""
