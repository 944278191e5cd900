"""How findings are written, a file a format: `written(found)` gives the whole output, "" for nothing to write."""

FORMATS = ("text", "json", "github", "sarif", "junit")
"""Each is the module of its name."""
