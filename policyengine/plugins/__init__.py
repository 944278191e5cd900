"""kube-scheduler's in-tree plugins as columns, one file each.

May import: `cluster`, `framework`, `quantity`, numpy. Pure. No plugin imports another.
"""
