"""The pure core: messages in, actions out. No clock, socket, thread or randomness.

May import: everything below it. `state.SchedulerState.handle(message, now)` is the whole interface.
"""
