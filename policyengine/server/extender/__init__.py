"""The extender: a policy's own rules behind a stock kube-scheduler, over its extender protocol (v1)."""
