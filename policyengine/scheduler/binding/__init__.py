"""From a posted binding to its result: PreBind, the answers of the API server, decisions that no longer hold.

`placement`, the gangs and the event handlers import it; it imports the core, its tables (`reservations`) and messages.
"""
