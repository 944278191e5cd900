"""Plugins that compare a pod's spec with what one Node states: name, taints, ports, images, features.

The registry imports the plugins. Imports `selectors` only.
"""
