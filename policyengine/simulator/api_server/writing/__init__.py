"""Everything that changes what is stored: the registry, and what each kind does when it is written or deleted.

`handler` imports it; it imports every other room but `faults`.
"""
