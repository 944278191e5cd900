"""What `python -m benchmarks` measures; nothing here judges a figure.

`decisions` and `language` measure this process alone, in CPU time. `end_to_end` runs an API server and a scheduler,
each in a process of its own, and watches them from here; `limit_process` stands in the scheduler's place and decides
nothing. `records` keeps results as JSON and compares them by ratios; `page` makes docs/performance.md of them.
"""
