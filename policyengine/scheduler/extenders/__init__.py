"""Programs outside that have a say in where a pod goes: kube-scheduler's extenders, seen from the core.

The cycle imports it; it imports the core's tables, `framework` and `plugins`. Requests are sent by `kube`.
"""
