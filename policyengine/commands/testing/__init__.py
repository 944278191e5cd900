"""The parts of `policyengine test`: suites read, tests run, results written.

Only commands import it; it imports what commands may.
"""
