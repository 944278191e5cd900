"""Request bodies into objects: JSON, YAML and protobuf, typed by the schema, with the real server's refusals.

`patching`, `writing` and `faults` import it; it imports `kinds` and statuses.
"""
