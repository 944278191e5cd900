"""Measures policyengine: `python -m benchmarks` in a checkout. Not part of the wheel; the package may not import it.

`decisions`, `queue`, `reload`, `devices`, `language` and `scale` measure the core and the toolchain in CPU time.
`end_to_end` runs an API server and a scheduler, each in a process of its own (`*_process`), and watches them from
here. `records` keeps results as JSON; `report` and `page` show them, `picture` draws them.
"""
