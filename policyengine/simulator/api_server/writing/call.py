"""A write as it comes in: who writes, by which request, with which options; and the names the server chooses."""

import random
from dataclasses import dataclass, field, replace

from policyengine.simulator.api_server.decoding.bodies import APPLY_PATCH, WriteOptions, write_options
from policyengine.simulator.api_server.http_requests import Request, RequestInfo, User
from policyengine.simulator.api_server.kinds.served import Kind

# k8s.io/apimachinery's rand.String leaves out vowels and look-alikes.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_NAME = 63


class Names:
    """The server's choices; equal seeds choose equally."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A version 4 UUID."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[self._random.getrandbits(2)]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def generate(self, base: str) -> str:
        """`base` with five random characters, cut so that the whole stays within 63."""
        suffix = "".join(self._random.choices(ALPHABET, k=SUFFIX_LENGTH))
        return base[: MAX_NAME - SUFFIX_LENGTH] + suffix


@dataclass(frozen=True, slots=True)
class Caller:
    """Who writes."""

    user: User
    user_agent: str


@dataclass(frozen=True, slots=True)
class Call:
    """A request about a kind: what it asks for, who makes it, and the options of a write."""

    request: Request
    info: RequestInfo
    kind: Kind
    caller: Caller
    options: WriteOptions = field(default_factory=WriteOptions)

    @property
    def scope(self) -> str:
        """The namespace a list or watch is limited to; empty for all."""
        return self.info.namespace if self.kind.namespaced else ""

    def with_options(self, what: str) -> "Call":
        """The call with the options of its query, called `what` in the 422 of those that are none."""
        return replace(self, options=write_options(self.request.query, what, self.request.content_type == APPLY_PATCH))
