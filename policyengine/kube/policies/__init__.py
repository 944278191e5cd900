"""Policies from ConfigMaps and SchedulingPolicies: compiled, ordered by precedence, given to the core, and reported on.

`scheduling` and the commands import from here.
Imports `http`, `watching`, `writing` and `config` of `kube`.
"""
