"""Rules of a policy -> plugins of a profile, one file a kind of rule.

`compile` imports it, and the extender. It imports `lower`, `columns`, `framework`, `language` and `cluster`.
"""
