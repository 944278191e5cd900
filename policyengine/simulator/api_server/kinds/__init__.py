"""The kinds served: their resources, types and schemas, custom ones included, and the documents that describe them."""
