"""The volume plugins: binding, zones, limits per CSI driver, exclusive disks.

The registry imports the plugins. Imports `selectors`, and from `resources` the scoring strategies.
"""
