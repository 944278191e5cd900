"""Recordings: what the core was told and when, and what it asked for; and playing that again.

`encoding` has the messages as bytes, `segment` the bytes of a file, `directory` the files; `recorder` looks on while a
core runs, `replay` runs another one on what was written. docs/recording.md describes the format.

Imported by `kube`, `server` and `commands`. Imports `scheduler` and what is below, and `policy_compiler`.
"""
