"""The API servers that scenes of processes are played on."""

import os

import pytest

from policyengine.simulator.real_server import ASSETS

BOTH = ("embedded", "envtest")
_REAL = ("envtest",) if os.environ.get(ASSETS) else ("embedded",)
the_most_real = pytest.mark.parametrize("kind", BOTH if os.environ.get("EVERY_SERVER") else _REAL)
"""For what is proven of the scheduler and takes long: on etcd and kube-apiserver where they are, else on the embedded
server; on both with `$EVERY_SERVER`."""
