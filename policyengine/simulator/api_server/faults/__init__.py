"""Injected faults: rules that say which requests they mean, effects that say what is done to them.

Tests add rules in Python; a server made with `fault_api=True` takes them over HTTP. `handler` imports it.
"""
