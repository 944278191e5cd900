"""What another policy would do: two runs of what happened, or of one moment, beside each other.

`history` reads a recording as what came, changed and went; `rerun` plays that under a policy; `snapshot` does the same
with a cluster as it is; `measures` counts a run, by what `membership` says that pods count in; `comparison` sets two
side by side, `tables` says it to people; `by_rule` undoes one change of a policy at a time; `condition` is
`--fail-on`.

Imported by `commands`, `server`. Imports `trials`, `recording`, `diagnosis` and what is below.
"""
