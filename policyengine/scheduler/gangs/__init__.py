"""Pods that are placed together or not at all: the index of gangs, their cycle, and room reserved for them.

The core and the cycle import it; it imports the queue, the binding room and what lies below the scheduler.
"""
