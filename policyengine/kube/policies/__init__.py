"""Policies from ConfigMaps: compiled, ordered by precedence, handed to the core, and reported on.

`scheduling` and the commands import from here.
Imports `http`, `watching`, `writing` and `config` of `kube`.
"""
