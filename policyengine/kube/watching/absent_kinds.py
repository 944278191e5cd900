"""When a kind that is absent is worth asking for again: its CustomResourceDefinition is watched until it is served.

Rules:
1. Only that one definition is watched, and only while the kind is absent: the right may name it (`resourceNames`). A
   watch without a version begins with what is there, so nothing is listed.
2. The word that a kind is served may be early: another replica of the server, or its own cache, may not have it yet.
   Whoever still finds nothing hears it again, after ever longer waits.
3. A definition that may not, or cannot, be watched is no problem: the kind is asked for every `ABSENT_FOR` seconds, as
   one that no definition makes.
"""

from __future__ import annotations

import logging
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import Kind, definition_of
from policyengine.cluster.workload_objects import CustomResourceDefinition
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.http.rate_limit import Backoff
from policyengine.kube.watching.store import Malformed, Observed, Store

logger = logging.getLogger(__name__)

ABSENT_FOR = 5.0
"""Seconds after which a server that did not serve an optional kind is asked again: such a question costs the server
next to nothing."""
_WATCH_SECONDS = 600
"""After which the server ends the watch; whoever waits asks for the kind sooner, and anew."""


class Definition:
    """What is heard of the definition of one kind."""

    def __init__(self, client: Client, resource: Kind[Any], clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._kind = definition_of(resource) if resource.is_custom else None
        self._versions = {one.api_version.rpartition("/")[2] for one in (resource, *resource.older)}
        self._again = Backoff(clock, random, first=0.1)
        self._was_heard = False
        """Whether the last word was that the kind is served."""
        self._is_said = False

    async def comes(self) -> None:
        """Return once the kind is to be asked for: it is served, or `ABSENT_FOR` seconds went by without a word."""
        if self._was_heard:
            self._was_heard = False
            await self._clock.sleep(self._again.delay(at_most=ABSENT_FOR))
        if self._kind is not None:
            try:
                self._was_heard = await self._is_heard(self._kind)
            except (ApiError, ConnectionFailed, Malformed) as error:
                if not self._is_said:
                    self._is_said = True
                    told = "%s is asked for every %g s, as its definition cannot be watched: %s"
                    logger.debug(told, self._kind.field_selector, ABSENT_FOR, error)
        if not self._was_heard:
            await self._clock.sleep(ABSENT_FOR)

    async def _is_heard(self, kind: Kind[CustomResourceDefinition]) -> bool:
        """Whether a watch, until it ends, says that the kind is served."""
        store = Store(kind, logger.debug)
        response = await self._client.watch(kind, "", _WATCH_SECONDS)
        try:
            async for lines in response.lines():
                changes, failure = store.apply_lines(lines)
                if any(isinstance(one, Observed) and one.object.serves(self._versions) for one in changes):
                    return True
                if failure is not None:
                    raise failure
            return False
        finally:
            await response.close()
