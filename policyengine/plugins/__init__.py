"""kube-scheduler's in-tree plugins as columns, in rooms by subject; `registry` lists them.

`policy_compiler` and the rooms above it may import `registry`, `facts` and the plugins themselves. May import:
`cluster`, `framework`, `quantity`, numpy. Pure. The registry alone knows all rooms.
"""
