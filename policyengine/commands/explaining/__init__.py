"""The parts of `policyengine explain`: who is asked (the running scheduler, a cluster, a file), how it is shown.

Only commands import it; it imports what commands may.
"""
