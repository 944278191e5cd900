"""Lists, watches, selectors, and the forms objects are shown in: JSON, YAML, metadata only, tables.

`handler` imports it, and `writing` the selectors; it imports `kinds`, `decoding` and the store.
"""
