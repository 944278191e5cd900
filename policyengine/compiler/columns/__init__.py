"""Columns of values over rows of nodes and pods, and the kernels that compute on them.

`lower` and `rules` import it. It imports `language`, `cluster` and numpy, and nothing else of the compiler.
"""
