"""The client side of kube-scheduler's extender protocol (v1): HTTP services that filter, score, preempt and bind.

The runner and `server.live` import from here.
Imports `http` and `config` of `kube`.
"""
