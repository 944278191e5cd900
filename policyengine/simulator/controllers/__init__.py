"""Stand-ins for kube-controller-manager and all kubelets, so that a sandbox feels like a cluster.

Each controller is a pure function of the objects that are there to the writes they ask for; `manager` follows the
objects and writes. Names of what controllers make are derived, so that a write made twice is refused, not done twice.
All of them are clients over a `Transport`. The sandbox and tests import them; they import `kube`, and the API server's
selectors and scalars.
"""
