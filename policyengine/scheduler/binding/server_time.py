"""Times that the API server sets or keeps, on the core's clock.

That clock makes good a step of the machine's by running up to a tenth fast or slow (`kube.runner`), the
server's does not: so many of its seconds have passed for certain only once a tenth more have passed here.
"""

from __future__ import annotations

from hashlib import blake2b

SLEW = 0.1
"""How much faster or slower than time itself the core's clock may run, as a share."""
LANDS_WITHIN = 60.0 * (1 + SLEW)
"""Seconds after which a request that was given up can land no more: kube-apiserver's --request-timeout (a create ends
after 34 s already, apiserver/pkg/endpoints/handlers). What lies in a socket of ours goes with the connection
(`kube.http.aiohttp_transport`)."""
RETRY_AFTER_SPREAD = 0.5
"""Retry-After is stretched by up to this share of itself, by pod, so that not all come back at once."""


def retry_after(uid: str, seconds: float) -> float:
    """Seconds to wait for what is about this pod, where the server asks for `seconds`."""
    return seconds * (1 + SLEW) * (1 + RETRY_AFTER_SPREAD * _fraction(uid))


def _fraction(uid: str) -> float:
    """A number in [0, 1) that differs from pod to pod and is the same in every run."""
    return int.from_bytes(blake2b(uid.encode(), digest_size=4).digest()) / 2**32
