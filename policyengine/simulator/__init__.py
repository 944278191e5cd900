"""Stand-ins for a cluster: the embedded API server, controllers with the kubelet, and a sandbox of both.

`real_server` runs etcd and kube-apiserver as child processes instead. Commands, benchmarks and tests import this room;
it imports `kube` and what lies below.
"""
