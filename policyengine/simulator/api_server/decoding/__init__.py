"""Request bodies into objects: JSON, YAML and protobuf, typed by the schema, with the real server's refusals.

`reading`, `writing` and `faults` import it; it imports `kinds`, requests, field errors and statuses.
"""
