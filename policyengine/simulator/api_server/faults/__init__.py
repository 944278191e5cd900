"""Faults on request: rules that say which requests they mean, effects that say what is done to them."""
