"""The pure core: messages in, actions out. No clock, socket, thread or randomness.

`state.SchedulerState.handle(message, now)` is the whole interface; `kube`, `trials` and the benchmarks import it, with
`messages` and `actions`. May import: everything below it. Its rooms, from below: `queue`, then `core` with its tables,
then `binding` and `gangs`.
"""
