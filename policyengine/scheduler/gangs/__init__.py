"""Pods that are placed together or not at all: the table of gangs, their cycle, and room reserved for them.

The queue imports the table (`gang`); the core and the cycle import the rest. That imports the core, the queue, the
binding room and preemption.
"""
