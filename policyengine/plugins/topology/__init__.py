"""PodTopologySpread, and the pod counts per topology domain that it shares with InterPodAffinity.

The registry imports the plugin, `affinity` the counts. Imports `selectors` only.
"""
