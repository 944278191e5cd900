"""Stand-ins for a cluster: the embedded API server, the kubelet, virtual time, scenarios."""
