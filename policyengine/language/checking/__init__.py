"""The parts of the checker, which `language.check` puts together: a subject a file.

`context` holds what they share; `expression` types expressions,
`rules`, `settings`, `params`, `plugins` and `tests` the members.
"""
