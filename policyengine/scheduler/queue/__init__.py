"""The scheduling queue of one profile: gated pods, activeQ, backoffQ, unschedulable pods and pods in flight.

The scheduler's core imports it; it imports `framework` and `cluster`, and of the gangs only their index. It decides
which pod is tried next, never where a pod goes.
"""
