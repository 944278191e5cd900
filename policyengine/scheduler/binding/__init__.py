"""From a chosen node to a bound pod: Reserve, Permit, PreBind, Bind, and the result of the binding.

The core imports the tables (`bindings`, `waiting_pods`, `reservation`); the cycle, the gangs and the event handlers
import the steps. These import the core, the gangs' table and which extender binds.
"""
