"""Selectors, terms and tolerations of the API, compiled once and matched many times.

Every other room of `plugins` may import from here. Imports no other room.
"""
