"""Objects -> columns -> snapshot: what the scheduler knows of the cluster, and nothing of the language.

May import: `quantity`, numpy, msgspec. Pure: no clock, socket, thread or randomness.
"""
