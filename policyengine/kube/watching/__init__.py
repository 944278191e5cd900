"""What the API server tells: list and watch of each kind, as messages for the core.

The runner and the policies' reloader import from here.
Imports `http` of `kube`.
"""
