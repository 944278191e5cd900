"""Whether an API server is still the one that was read before: the one place that decides that its versions went back.

They go back where etcd is restored from an older copy, and say nothing any more where another cluster answers under
the address. No server tells: kube-apiserver accepts a watch from a version it has not reached, and is silent until it
has (apiserver/pkg/storage/cacher, v1.36). What is known of such a server belongs to a generation that is over.

Evidence is taken from answers that are as new as it gets, each by itself enough:
1. Before a watch is resumed the server is asked where it is (`look`): two lists, of the namespace kube-system and of
   the kind, that are both older than what was seen. Lists here name no resourceVersion, so each is a quorum read of
   etcd's ("Most Recent",
   https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list). One that is older alone is
   not believed: versions of two kinds may be counted by two etcds (--etcd-servers-overrides), and a server may lag.
2. A list that is not older shows an object older than it was seen, or one that was seen deleted (`Store.apply_page`).
3. A read or a write of one object answers with an older version than was seen of it before it was asked for
   (`compare`): pods, their conditions, the Lease.
4. The namespace kube-system has another UID: another cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Any, Protocol

from policyengine.clock import Clock
from policyengine.cluster.kinds import NAMESPACES
from policyengine.cluster.objects import ObjectMeta
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.watching.store import Meta, identity, number

logger = logging.getLogger(__name__)

HOLDS_FOR = 2.0
"""Seconds for which an answer of where the server is, or that none came, is told to others."""
_THE_NAMESPACE = "metadata.name=kube-system"


class Follower(Protocol):
    """Who lists objects of the server: a `Reflector`."""

    generation: int
    """Of its last whole list; -1 before the first."""

    @property
    def resource(self) -> Any:
        """The kind."""


class ServerHistory:
    """What all that read and write one API server know of its versions together."""

    def __init__(self, client: Client | None, clock: Clock) -> None:
        """`client` asks the server where it is; None for one that may not list namespaces: 1 and 4 are left out."""
        self.generation = 0
        """Grows when the server's versions are found to have gone back: nothing known from before counts."""
        self.followers: list[Follower] = []
        self.listeners: list[Callable[[], None]] = []
        """Called, at once, when a generation ends."""
        self._client = client
        self._clock = clock
        self._cluster = ""
        """UID of the namespace kube-system; empty before it was seen."""
        self._asks = asyncio.Lock()
        self._asked_at, self._found = -inf, 0
        """When the last look began, on the monotonic clock, and what it found, or why it found nothing."""
        self._failure: ApiError | ConnectionFailed | None = None
        self._news = asyncio.Event()
        self._has_numbers = True

    @property
    def behind(self) -> list[str]:
        """Kinds of which what is known belongs to a generation that is over."""
        return sorted({one.resource.plural for one in self.followers if 0 <= one.generation < self.generation})

    def went_back(self, why: str, since: int) -> None:
        """The server's versions went back, for this reason, which was found out in the generation `since`."""
        if since != self.generation:
            return
        self.generation += 1
        logger.warning("the API server has gone back to an older copy: %s; everything is listed anew", why)
        for listener in self.listeners:
            listener()
        self._news.set()

    def compare(self, what: str, seen: tuple[str, int], now: Meta | ObjectMeta, since: int) -> None:
        """An object as an answer shows it that is as new as it gets, beside what had been `seen` (UID, version) of it
        by the time it was asked for, in the generation `since`."""
        uid, version = seen
        if uid == now.uid and 0 < number(now.resource_version) < version:
            self.went_back(f"{what} has version {now.resource_version}, and had {version}", since)

    def count(self, version: str) -> int:
        """A version that a kind was listed or watched at, as a number. 0 for one that is none, which is told once."""
        found = number(version)
        if not found and self._has_numbers:
            self._has_numbers = False
            logger.warning(
                "the API server's version `%s` is no number: whether such a server goes back is not found out", version
            )
        return found

    async def look(self, since: float) -> int:
        """The version the server has reached at some time after `since`, in seconds on the monotonic clock; 0 where it
        does not say, or may not be asked. One answer is told to many. Raises `ApiError`, `ConnectionFailed`."""
        if self._client is None:
            return 0
        async with self._asks:
            now = self._clock.monotonic()
            is_known = self._failure is not None or self._asked_at >= since
            if not is_known or now - self._asked_at >= HOLDS_FOR:
                self._asked_at, self._failure = now, None
                try:
                    self._found = await self._look(self._client)
                except (ApiError, ConnectionFailed) as error:
                    self._failure = error
            if self._failure is not None:
                raise self._failure
            return self._found

    async def _look(self, client: Client) -> int:
        since = self.generation
        try:
            page = await client.list_page(NAMESPACES, field_selector=_THE_NAMESPACE)
        except ApiError as error:
            if error.status in (403, 404):
                return 0
            raise
        for raw in page.items or ():
            uid, before = identity(raw).uid, self._cluster
            self._cluster = uid
            if before and uid != before:
                self.went_back(f"the namespace kube-system has the UID {uid}, and had {before}: another cluster", since)
        return number(page.metadata.resource_version)

    def listed(self) -> None:
        """A follower has listed all it follows."""
        self._news.set()

    async def settled(self) -> int:
        """Wait until everything is listed in one generation, and say which."""
        while self.behind:
            await self._hears()
        return self.generation

    async def ended(self, generation: int) -> None:
        """Wait until this generation is over."""
        while self.generation == generation:
            await self._hears()

    async def _hears(self) -> None:
        self._news.clear()
        await self._news.wait()
