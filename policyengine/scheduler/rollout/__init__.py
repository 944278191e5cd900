"""A candidate policy beside the one that serves: shadow and canary, compared on the same snapshot.

The core imports it; `kube` imports its settings. It imports the cycle and what that imports.
"""
