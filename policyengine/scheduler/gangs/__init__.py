"""Pods that are placed together or not at all: their cycle, giving places back, and choosing nodes to reserve for them.

The cycle, the event handlers and `state` import it. It imports the core, `placement`, `preempt`, the binding room and
the table of gangs, which is the queue's.
"""
