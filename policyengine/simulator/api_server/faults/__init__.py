"""Injected faults: rules that say which requests they mean, effects that say what is done to them.

Tests add rules to `ApiServer.faults`; the `handler` imports this room.
"""
