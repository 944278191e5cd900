"""The pure core: messages in, actions out. No clock, socket, thread or randomness.

`state.SchedulerState.handle(message, now)` is the whole interface; `kube`, `trials` and the benchmarks import it. May
import: everything below it. Its rooms: queue, gangs, binding, preemption, extenders, rollout.
"""
