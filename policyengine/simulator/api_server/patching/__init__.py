"""Patches of every type, server-side apply, and who owns which fields. `writing` and `handler` import it."""
