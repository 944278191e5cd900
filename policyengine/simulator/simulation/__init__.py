"""Scenarios: what a policy would do with a cluster's day, on virtual time. Nothing here reads a clock or a socket."""
