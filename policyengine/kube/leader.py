"""Which replica may act: leader election by a Lease (coordination.k8s.io/v1), as client-go's `leaderelection` does it.

Rules:
1. Clocks of other machines are not believed. A lease is held until `lease_duration` has passed on the local monotonic
   clock since it was *seen* to change; what its `renewTime` says does not matter.
2. A leader may act until `renew_deadline` after it *asked for* its last successful renewal. `leaders_transport` asks
   right before every request that changes something is sent, so neither a pause of any length nor a wait for a
   connection can outlast it. The rest of the lease is the time in which requests under way arrive.
3. A leadership once lost is not taken up again: `run` raises `LeadershipLost`, and the process ends. What it had
   decided dies with it, and its successor knows only what the API server says.
4. Every write carries the version read, so of two that find a lease expired one gets it.
5. A clean end gives the lease back, after everything that was decided is done.
6. A lease whose version went back shows that the server did (`ServerHistory`). Whoever held it before may still act by
   what it was: it counts as held for its duration from then on, be it free in the copy. Who leads writes it anew, also
   over the very term that it had taken over from.

Waits of a follower are spread over a quarter to half a `retry_period`, and end when the lease does (client-go waits for
one to 2.2 periods, as we do where the server fails): a successor leads at the latest `lease_duration` and half a
`retry_period` after its predecessor died. The rest of a period is for finding out what that one decided last
(`Informers.catch_up`).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from random import Random
from typing import Any, NoReturn

from policyengine.clock import Clock, micro_time
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, object_of
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Meta, number

logger = logging.getLogger(__name__)


HEALTHY_WAIT, FAILING_WAIT = 0.25, 1.0
"""Periods that a follower waits at least after a try that was answered, and after one that failed; twice as many at
most."""


_LEASE: dict[str, object] = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
LABEL, LABELLED = "app.kubernetes.io/name", "policyengine"
"""By which our leases are found among others."""
PAGES = "policyengine.io/pages"
"""The annotation that says where the leader's pages are; its forms are those of `kube.scheduler_pages`."""


_MOST_TRANSITIONS = 2**31 - 1
"""A Lease's numbers are int32: the server refuses one more, and with it the lease."""
_TERM = ("holderIdentity", "acquireTime", "leaseTransitions")


class LeadershipLost(Exception):
    """The lease could not be renewed in time, or another replica holds it."""


@dataclass(frozen=True)
class LeaseSettings:
    """Which lease, and its times in seconds; kube-scheduler's figures."""

    name: str = "policyengine"
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def problem(self) -> str | None:
        """Why these times cannot work together (client-go's conditions); None where they can."""
        if min(self.lease_duration, self.renew_deadline, self.retry_period) <= 0 or self.lease_duration < 1:
            return "the lease lasts a second or more, the other times are above zero"
        if self.lease_duration % 1:
            return f"leaseDuration ({self.lease_duration:g}s) must be whole seconds: a Lease names no fractions"
        if self.lease_duration <= self.renew_deadline:
            return f"leaseDuration ({self.lease_duration:g}s) must be above renewDeadline ({self.renew_deadline:g}s)"
        if self.renew_deadline <= 1.2 * self.retry_period:
            return f"renewDeadline ({self.renew_deadline:g}s) must be above 1.2 x retryPeriod ({self.retry_period:g}s)"
        return None


def new_identity(host: str, random: Random) -> str:
    """`HOST_UUID`, as kube-scheduler calls itself; another one for every process."""
    return f"{host}_{uuid.UUID(int=random.getrandbits(128), version=4)}"


class LeaderElector:
    """One candidate for one lease."""

    def __init__(
        self, client: Client, clock: Clock, random: Random, identity: str, settings: LeaseSettings = LeaseSettings()
    ) -> None:
        self.elected = asyncio.Event()
        self.history = ServerHistory(client, clock)
        """Of the server; everything that reads and writes it here shares it."""
        self.identity = identity
        self.settings = settings
        self.holder = ""
        """Who holds the lease, as last seen."""
        self.pages: str | None = None
        """What the lease says of this replica's pages while it leads; None: the lease says nothing of pages."""
        self._client = client
        self._clock = clock
        self._random = random
        self._leads = False
        self._may_act_until = 0.0
        self._lease: dict[str, Any] = {}
        """As last seen, or as last written."""
        self._changed_at = 0.0
        """When the lease was last seen to change, on the monotonic clock."""
        self._not_before = 0.0
        """Until when a lease that its holder did not give up counts as held, whatever it says."""
        self._seen_in = 0
        """The server's generation in which the lease was seen, or written, last."""
        self._asked_for: dict[str, Any] = {}
        """The spec with which this replica asked for a term last."""
        self._displaced: dict[str, Any] = {}
        """The spec of the term that this one's took the place of."""
        self._generation = -1
        """Of the server (`ServerHistory`) to which the lease was written last."""
        self._written, self._hurry = asyncio.Event(), asyncio.Event()
        self.history.listeners.append(self._hurry.set)

    def holds(self) -> bool:
        """Whether this replica may act now."""
        return self._leads and self._clock.monotonic() < self._may_act_until

    async def run(self) -> None:
        """Wait for the lease, set `elected`, keep it. Never returns; raises `LeadershipLost`."""
        await self._acquire()
        self.elected.set()
        while True:
            await self._rest()
            await self._renew()

    @property
    def predecessor_died(self) -> bool:
        """Whether who held the lease before did not give it back."""
        return bool(self._displaced.get("holderIdentity"))

    async def leads_in(self, generation: int) -> None:
        """Wait until this replica has written the lease to a server of that generation."""
        while self._generation < generation:
            self._written.clear()
            await self._written.wait()

    async def _rest(self) -> None:
        """Until the next renewal is due: at once, where the server has gone back."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.retry_period):
                await self._hurry.wait()
        self._hurry.clear()

    async def release(self) -> None:
        """Give the lease back, so that the next replica need not wait; nothing where this one does not hold it."""
        if not self.holds():
            return
        self._leads = False
        now = micro_time(self._clock.now())
        given_back = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
        try:
            await self._give_back(given_back)
            logger.info("gave back %s", self._name)
        except (ApiError, ConnectionFailed) as error:
            logger.warning("%s was not given back, it expires: %s", self._name, error)

    async def _give_back(self, given_back: Mapping[str, Any]) -> None:
        try:
            await self._write({**self._lease["spec"], **given_back})
        except ApiError as error:
            # A renewal that was under way when the end came may have landed: then the lease has another version, and
            # is still ours.
            lease = await self._read() if error.status == HTTPStatus.CONFLICT else None
            if lease is None or (lease.get("spec") or {}).get("holderIdentity") != self.identity:
                raise
            self._lease = lease
            await self._write({**lease["spec"], **given_back})

    @property
    def _name(self) -> str:
        return f"lease `{self.settings.namespace}/{self.settings.name}`"

    async def _acquire(self) -> None:
        """Ask for the lease until it is ours."""
        logger.info("waiting for %s as `%s`", self._name, self.identity)
        said = ""
        while True:
            periods = HEALTHY_WAIT
            try:
                async with asyncio.timeout(self.settings.renew_deadline):
                    if await self._try_to_acquire_or_renew():
                        logger.info("leading: %s is held by `%s`", self._name, self.identity)
                        return
            except (ApiError, ConnectionFailed, TimeoutError) as error:
                periods = FAILING_WAIT
                problem = str(error) or "no answer in time"
                if problem != said:
                    logger.warning("cannot ask for %s: %s", self._name, problem)
                said = problem
            await self._clock.sleep(self._until_next_try(periods))

    def _until_next_try(self, periods: float) -> float:
        wait = self.settings.retry_period * periods * (1 + self._random.random())
        left = self._expires_at() - self._clock.monotonic() if self._lease else wait
        return min(wait, left) if left > 0 else wait

    async def _renew(self) -> None:
        """Renew, again and again until the deadline. Raises `LeadershipLost`."""
        problem = "no answer in time"
        while (left := self._may_act_until - self._clock.monotonic()) > 0:
            asked_at = self._clock.monotonic()
            try:
                async with asyncio.timeout(left):
                    if not await self._try_to_acquire_or_renew():
                        self._lose(f"{self._name} is held by `{self.holder or 'nobody'}`")
                return
            except (ApiError, ConnectionFailed) as error:
                problem = str(error)
                logger.warning("cannot renew %s: %s", self._name, problem)
            except TimeoutError:
                break
            # Time spent waiting for an answer has been waited: as many tries as there can be, a period apart.
            due = min(asked_at + self.settings.retry_period, self._may_act_until)
            await self._clock.sleep(max(0.0, due - self._clock.monotonic()))
        self._lose(f"{self._name} was not renewed within {self.settings.renew_deadline:g} s: {problem}")

    def _lose(self, why: str) -> NoReturn:
        self._leads = False
        raise LeadershipLost(f"leadership lost: {why}")

    async def _try_to_acquire_or_renew(self) -> bool:
        """Take the lease, or renew it; False where somebody else holds it.

        Who leads knows the lease and writes at once; it is read only where somebody touched it meanwhile, or an answer
        of ours was lost.
        """
        asked_at, now, since = self._clock.monotonic(), micro_time(self._clock.now()), self.history.generation
        if self._leads:
            try:
                return self._took(await self._write(self._lease["spec"] | {"renewTime": now}), asked_at, since)
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
        lease = await self._read()
        self._observe(lease or {})
        since, spec, is_ours = self.history.generation, self._spec_seen, self._is_ours()
        if not is_ours and self._is_anothers():
            return False
        acquired, transitions = spec.get("acquireTime") or now, _count(spec.get("leaseTransitions"))
        if not is_ours:
            acquired, transitions = now, min(transitions + 1, _MOST_TRANSITIONS) if spec else 0
        displaced = spec if not is_ours and not self._leads else self._displaced
        self._asked_for = self._spec(acquired, transitions, now)
        try:
            taken = await (self._create if lease is None else self._write)(self._asked_for)
        except ApiError as error:
            if error.status == 409 and not self._leads:
                return False  # another candidate was faster
            raise
        self._displaced = displaced
        return self._took(taken, asked_at, since)

    @property
    def _spec_seen(self) -> dict[str, Any]:
        return self._lease.get("spec") or {}

    def _is_ours(self) -> bool:
        """Whether the lease is this replica's: it leads, or an earlier request took it, whose answer was lost."""
        return self.holder == self.identity and (self._leads or _same_term(self._spec_seen, self._asked_for))

    def _is_anothers(self) -> bool:
        """Whether the lease, which is not this replica's, may not be taken."""
        if self._leads:
            is_free = not self.holder and not _is_given_back(self._spec_seen)
            return not is_free and not _same_term(self._spec_seen, self._displaced)
        now = self._clock.monotonic()
        return now < self._not_before or bool(self.holder and now < self._expires_at())

    def _observe(self, lease: dict[str, Any]) -> None:
        """`lease`: as it was just read; {} where there is none."""
        now, seen, spec = self._clock.monotonic(), identity_of(self._lease), lease.get("spec") or {}
        self.history.compare(self._name, (seen.uid, number(seen.resource_version)), identity_of(lease), self._seen_in)
        holder, was_anothers = str(spec.get("holderIdentity") or ""), self.holder not in ("", self.identity)
        went_back, self._seen_in = self._seen_in != self.history.generation, self.history.generation
        changed = lease.get("spec") != self._lease.get("spec")
        is_taken = changed and not holder and not _is_given_back(spec) and (was_anothers or "acquireTime" in spec)
        if changed or went_back or not self._lease:
            self._changed_at = now
        if is_taken or (went_back and was_anothers):
            self._not_before = max(self._not_before, now + self.settings.lease_duration)
        if is_taken and not self._leads:
            state, seconds = "names no holder" if lease else "is gone", self.settings.lease_duration
            logger.warning("%s %s, and nobody gave it back: it counts as held for %g s", self._name, state, seconds)
        is_news, self._lease, self.holder = holder != self.holder, lease, holder
        if is_news and holder not in ("", self.identity):
            left = self._expires_at() - now
            logger.info("standing by: %s is held by `%s`, for %g s at a time", self._name, holder, left)

    def _expires_at(self) -> float:
        """When a lease that does not change any more counts as given up; one that names no time lasts as long as
        ours."""
        seconds = _count(self._spec_seen.get("leaseDurationSeconds"))
        return self._changed_at + (seconds if seconds > 0 else self.settings.lease_duration)

    def _took(self, lease: dict[str, Any], asked_at: float, since: int) -> bool:
        self._lease, self.holder, self._leads = lease, self.identity, True
        self._changed_at = self._clock.monotonic()
        self._may_act_until = asked_at + self.settings.renew_deadline
        self._generation = self._seen_in = since
        self._written.set()
        return True

    # ---- requests

    def _spec(self, acquired: str, transitions: int, now: str) -> dict[str, object]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.settings.lease_duration),
            "acquireTime": acquired,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def _read(self) -> dict[str, Any] | None:
        try:
            return await self._call("GET", self.settings.name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def _create(self, spec: dict[str, object]) -> dict[str, Any]:
        metadata = {"name": self.settings.name, "namespace": self.settings.namespace}
        return await self._call("POST", "", _LEASE | {"metadata": self._described(metadata), "spec": spec})

    async def _write(self, spec: dict[str, object]) -> dict[str, Any]:
        """Replace the lease; the server refuses it (409) where that is not the version seen last."""
        metadata = {key: value for key, value in self._lease["metadata"].items() if key != "managedFields"}
        return await self._call(
            "PUT", self.settings.name, _LEASE | {"metadata": self._described(metadata), "spec": spec}
        )

    def _described(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """With the label our leases have, and where the pages are."""
        if self.pages is None:
            return metadata
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        return metadata | {"labels": labels | {LABEL: LABELLED}, "annotations": annotations | {PAGES: self.pages}}

    async def _call(self, method: str, name: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        # client-go's half of the renew deadline, so that one lost request loses no lease.
        seconds = self.settings.renew_deadline / 2
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.settings.namespace}/leases/{name}".rstrip("/")
        return object_of(await self._client.call(method, path, body, seconds=seconds))


def identity_of(lease: dict[str, Any]) -> Meta:
    """What tells a Lease and its version apart."""
    meta = lease.get("metadata") or {}
    return Meta(uid=str(meta.get("uid", "")), resource_version=str(meta.get("resourceVersion", "")))


def _same_term(spec: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two states of a lease are of one holder's one term."""
    return bool(other) and all(spec.get(key) == other.get(key) for key in _TERM)


def _is_given_back(spec: dict[str, Any]) -> bool:
    """Whether its holder says in a lease that it is free (`LeaderElector.release`; client-go does the same)."""
    return not spec.get("holderIdentity") and spec.get("leaseDurationSeconds") == 1


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
