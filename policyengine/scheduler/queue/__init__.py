"""The scheduling queue of one profile: gated pods, activeQ, backoffQ, unschedulable pods and pods in flight.

`profiles`, the core and the rollout import it; it imports `framework`, `cluster` and the table of gangs. It decides
which pod is tried next, never where a pod goes.
"""
