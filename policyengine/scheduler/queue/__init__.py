"""The scheduling queue of one profile: gated pods, activeQ, backoffQ, unschedulable pods and pods in flight.

`profiles`, `core` and all above import it; it imports `framework`, `cluster` and `pod_timeline`. It decides which pod
is tried next, never where a pod goes.
"""
