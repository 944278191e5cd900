"""What a scheduler is told when it starts: its configuration file, kubeconfig and credentials, logs, limits.

Everybody in `kube` and above imports from here.
Imports `http` of `kube`.
"""
