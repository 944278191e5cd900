"""The parts of `policyengine lint`: files read and fixed, findings written in each form, pages and examples.

Only commands import it; it imports what commands may.
"""
