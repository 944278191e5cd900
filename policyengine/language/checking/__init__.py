"""The parts of the checker, which `language.check` puts together: a file for each subject.

`context` is where an expression stands, `expression` checks one, `policy_checks` a policy with all its members.
Imported by `check`; the names of plugins' facts, params, given objects and questions also by what stands above
`language`. Imports the rest of `language`, but not `lint`.
"""
