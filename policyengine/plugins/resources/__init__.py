"""The plugins that filter and score nodes by resources: NodeResourcesFit and NodeResourcesBalancedAllocation.

`registry` imports the two plugins, and `volumes` the lines of a scoring strategy. May import `framework` and `cluster`.
"""
