"""DefaultPreemption: which pods of lower priority make room for a pod that fits nowhere.

The registry imports the plugin; `scheduler` explains with its candidates. Imports `selectors` only.
"""
