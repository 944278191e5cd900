"""Lists, watches, selectors, and the forms objects are shown in: JSON, YAML, tables.

`handler` imports it, and `writing` the selectors; it imports `kinds`, `decoding` and the store.
"""
