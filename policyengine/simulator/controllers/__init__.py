"""Stand-ins for kube-controller-manager: what pods, budgets and namespaces need so that a sandbox feels like a cluster.

Each controller is a pure function of the objects that are there to the writes they ask for; `manager` follows the
objects and writes. Names of what they make are worked out, so that a write made twice is refused, not done twice.
"""
