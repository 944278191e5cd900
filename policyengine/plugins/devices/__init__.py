"""DynamicResources: devices of ResourceSlices for the ResourceClaims of pods.

The registry imports the plugin. Imports `selectors` only.
"""
