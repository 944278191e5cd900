"""The kinds served, built-in and custom, and the documents that describe them; the facts lie in `schemas/`.

Every other room may import it; it imports the store, requests and statuses.
"""
