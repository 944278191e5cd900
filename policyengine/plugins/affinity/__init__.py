"""NodeAffinity and InterPodAffinity.

The registry imports the two plugins. Imports `selectors`, and from `topology` the counts per domain.
"""
