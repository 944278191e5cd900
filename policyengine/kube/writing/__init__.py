"""What the core decided, on its way to the API server: bindings, events, conditions, deletions, patches.

The runner and the policies' reports import from here.
Imports `http`, `watching` and `extenders` of `kube`.
"""
