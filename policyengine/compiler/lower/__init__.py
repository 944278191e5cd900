"""Expressions of the checked tree -> closures: over one decision (`scope`) or over rows (`vector`).

`rules` imports it. It imports `columns`, `coverage`, `language` and numpy.
"""
