"""Bodies read: JSON, YAML and protobuf into objects of a kind, with the real server's refusals."""
