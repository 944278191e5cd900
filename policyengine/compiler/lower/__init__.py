"""Expressions of the checked tree -> closures: over one decision (`scalar`) or over rows (`vector`).

`rules` imports it. It imports `columns`, `language`, `cluster` and numpy.
"""
