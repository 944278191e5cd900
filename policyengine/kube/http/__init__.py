"""How requests reach the API server: the transport, its rate limit, and the client with one method a call.

Everybody in `kube`, and whoever talks to an API server above it, imports from here.
Imports nothing of `kube`.
"""
