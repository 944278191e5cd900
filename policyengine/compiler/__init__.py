"""IR -> column closures and rules: the only place that knows both language and cluster.

May import: `language`, `cluster`, `framework`, numpy, scipy. Pure.
"""
