"""From a chosen node to a bound pod: Reserve, Permit, PreBind, Bind, and what becomes of the binding.

The core, the cycle and the gangs import it; it imports `framework`, `cluster` and the scheduler's messages and actions.
"""
