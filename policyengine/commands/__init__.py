"""The command line: a file a command, and what several commands share.

Nothing imports it but tests and entry points. It may import every room; what takes time is imported inside the command
that needs it.
"""
