"""The scheduler tried on virtual time: tests of policies, and simulated scenarios.

`kube` (a policy's tests run before it serves) and the commands import it; it stands above `scheduler`. `trial.Trial` is
the ground of both: the core with an API server made of dicts.
"""
