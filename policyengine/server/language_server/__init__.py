"""The language server: what editors ask, answered by the language's own parser, checker, schema, lint and formatter."""
