"""Who asks and what they may do: authentication, impersonation, RBAC and access reviews.

`handler` and `writing` import it; it imports the store, statuses and requests.
"""
