"""The plugins that filter and score nodes by resources: NodeResourcesFit and NodeResourcesBalancedAllocation.

`registry` imports the two plugins, and other plugins import `per_shape`. May import `framework` and `cluster`.
"""
