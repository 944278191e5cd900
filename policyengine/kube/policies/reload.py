"""Policies from the API: watched, compiled off the hot path, swapped between two cycles, and reported on.

    watch ──> limit ──> compile, lint, test ──> who serves, who is tried (`precedence`) ──> the core ──> status, Event
                                                                                        │
                                       every second: was a candidate suspended? ────────┘

They stand in ConfigMaps labelled `policyengine.io/policy=true` and in SchedulingPolicies (`sources`). One such object
stands or falls as a whole: what became of it is written into its status. Only the newest version of each is compiled,
and not too often, so that a flapping one costs no more than its compiling. One that takes long holds up no other.

After a restart the texts that were accepted before serve first, and are tested after that. Those that were rejected
are looked at later. Of a text that no status speaks of, the answer is awaited for `SETTLING` seconds. Who can write a
status can forge one; all that wins is to serve before the text's own tests have run.

A candidate that was suspended stays so, in other replicas and after a restart too: its status says so.

SchedulingPolicies are optional. Where nobody serves them, or this scheduler may not list them, there are none, and one
line says so; they are asked for again. Those of a CustomResourceDefinition that is deleted are gone with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from math import inf
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.policies.compiling import CompileLimiter
from policyengine.kube.policies.config_map import LABEL_SELECTOR
from policyengine.kube.policies.precedence import Candidate, Compile, Precedence, SourceKey, Standing, changes
from policyengine.kube.policies.reports import PolicyReports
from policyengine.kube.policies.rollout_settings import Suspension, described
from policyengine.kube.policies.scheduling_policy import FORMS, Form, selector
from policyengine.kube.policies.serving import candidate_of, refused_unread
from policyengine.kube.policies.sources import ACCEPTED, DEFAULT_NAMESPACE, REJECTED, SUSPENDED, PolicySource
from policyengine.kube.watching.informers import PolicyMessage
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Observed
from policyengine.scheduler.actions import RecordEvent
from policyengine.scheduler.messages import CandidateLoaded, CandidateRemoved, ProfileRemoved, ProfileReplaced
from policyengine.scheduler.rollout import Rollout, RolloutSettings

logger = logging.getLogger(__name__)

SETTLING = 3.0
"""Seconds after the first list in which its policies can be compiled before the first pod is decided about."""
LOOK = 1.0
"""Seconds between two looks at the candidates that are tried."""


class PolicyReloader:
    """Watches policies and hands profiles to the core."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        compile_files: Compile,
        put: Callable[[PolicyMessage], None],
        *,
        files: Iterable[Profile] = (),
        namespace: str = DEFAULT_NAMESPACE,
        label_selector: str = LABEL_SELECTOR,
        rollouts: Callable[[], Mapping[str, Rollout]] = dict,
        record: Callable[[RecordEvent], None] = lambda event: None,
        leads: Callable[[], bool] = lambda: True,
        history: ServerHistory | None = None,
    ) -> None:
        """`rollouts`: the candidates at work in the core, by scheduler name; `record` writes an Event; `leads`: whether
        this replica may."""
        self.settled = asyncio.Event()
        """Set once the policies of the first list were handed over, as far as they were compiled in time."""
        self.rejected = 0
        """Versions of objects that were refused so far."""
        self.suspended = 0
        """Candidates that were suspended here so far."""
        self._clock = clock
        self._compile = compile_files
        self._put = put
        self._rollouts = rollouts
        self._precedence = Precedence(files)
        self._serving = self._precedence.decide().serving
        self._tried: dict[str, tuple[SourceKey, str, RolloutSettings, str]] = {}
        """Scheduler name -> who is tried: object, policy hash, how, why it is not any more."""
        self._suspensions: dict[SourceKey, Suspension] = {}
        """What of it was suspended, and why."""
        self._seen: dict[SourceKey, PolicySource] = {}
        """The newest version."""
        self._compiled: dict[SourceKey, tuple[object, ...]] = {}
        """What was in it when it was compiled last."""
        self._compiling: set[SourceKey] = set()
        """Those being compiled."""
        self._waiting: dict[SourceKey, PolicySource | None] = {}
        """What arrived and was not looked at yet; None for a deletion."""
        self._arrived = asyncio.Event()
        self._has_candidates = asyncio.Event()
        self._limiter = CompileLimiter()
        self._reflectors: dict[Form, Reflector[Any]] = {
            form: Reflector(
                client,
                form.KIND,
                clock,
                random,
                history=history,
                namespace=namespace,
                label_selector=selector(form, label_selector),
                on_problem=logger.warning,
                on_absent=_tell_absent,
            )
            for form in FORMS
        }
        self._reports = PolicyReports(client, clock, random, record, leads)
        if history is not None:
            history.listeners.append(self._reports.doubt_all)

    @property
    def standings(self) -> dict[SourceKey, Standing]:
        """What became of each object that was looked at."""
        return self._precedence.decide().standings

    async def run(self) -> None:
        """Watch, compile and report until cancelled."""
        async with asyncio.TaskGroup() as group:
            for form in self._reflectors:
                group.create_task(self._follow(form))
            group.create_task(self._settle_in_time())
            group.create_task(self._reports.run())
            group.create_task(self._work(group))
            group.create_task(self._look_after_candidates())

    async def flush(self, seconds: float) -> None:
        """Write the annotations that still wait."""
        self._report_progress(is_last=True)
        await self._reports.flush(seconds)

    async def _follow(self, form: Form) -> None:
        async for change in self._reflectors[form].changes():
            if isinstance(change, Observed):
                source = form(change.object)
                self._waiting[source.key] = source
            else:
                self._waiting[SourceKey(change.namespace, change.name, form.KIND.kind)] = None
            self._arrived.set()

    @property
    def _is_synced(self) -> bool:
        return all(reflector.synced.is_set() for reflector in self._reflectors.values())

    async def _settle_in_time(self) -> None:
        for reflector in self._reflectors.values():
            await reflector.synced.wait()
        self._arrived.set()
        await self._clock.sleep(SETTLING)
        self._settle()

    def _settle(self) -> None:
        """Hand over what is compiled by now, and turn to the rest."""
        if not self.settled.is_set():
            self._apply()
            self.settled.set()
            self._arrived.set()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._something_due()
            now = self._clock.monotonic()
            due = [key for key, found in self._waiting.items() if self._due_at(key, found) <= now]
            for key in sorted(due, key=self._rank):
                self._take(key, self._waiting.pop(key), group)
            if self.settled.is_set():
                self._apply()
            elif self._is_synced and not due and not self._compiling:
                # Together, so that at the start no younger ConfigMap serves until the older one was compiled.
                self._settle()

    async def _something_due(self) -> None:
        """Wait for news, until one that flaps has its next turn, or until a status is to be written again."""
        due = min([self._reports.correction_due, *map(self._due_at, self._waiting, self._waiting.values())])
        wait = due - self._clock.monotonic()
        if wait > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait == inf else wait):
                    await self._arrived.wait()
        self._arrived.clear()  # and not before: the list may be in by the time this is first waited for

    def _due_at(self, key: SourceKey, source: PolicySource | None) -> float:
        """When to look at it. A new text of one that flaps has to wait, anything else has not."""
        if key in self._compiling:
            return inf
        if source is None or self._compiled.get(key) == source.content:
            return 0.0
        if not self.settled.is_set() and (key in self._seen or source.verdict == REJECTED):
            return inf
        return self._limiter.due(key)

    def _rank(self, key: SourceKey) -> tuple[bool, str, SourceKey]:
        """At the start: those that were accepted before the others, the older before the younger."""
        source = self._waiting[key]
        if source is None:
            return False, "", key
        return source.verdict not in (ACCEPTED, SUSPENDED), source.metadata.creation_timestamp or "", key

    def _take(self, key: SourceKey, source: PolicySource | None, group: asyncio.TaskGroup) -> None:
        """Take in what became of one object; begin to compile what is new in it."""
        if source is None:
            for known in (self._seen, self._compiled, self._suspensions):
                known.pop(key, None)
            self._precedence.remove(key)
            self._reports.forget(key)
            self._limiter.tidy(self._seen, self._clock.monotonic())
        elif self._compiled.get(key) == source.content:
            self._see(key, source)
        else:
            self._compiling.add(key)
            group.create_task(self._compile_new(key, source))

    def _see(self, key: SourceKey, source: PolicySource) -> None:
        self._seen[key] = source
        suspension = source.suspension
        if suspension is not None:
            self._suspensions[key] = suspension

    async def _compile_new(self, key: SourceKey, source: PolicySource) -> None:
        is_tested = self.settled.is_set() or source.verdict not in (ACCEPTED, SUSPENDED)
        if is_tested:
            self._limiter.note(key, self._clock.monotonic())
        candidate, is_final = await self._candidate(source, is_tested)
        self._compiling.remove(key)
        self._arrived.set()
        newest = self._waiting.get(key, source)
        if newest is None or newest.metadata.uid != source.metadata.uid:
            return  # deleted meanwhile
        self._see(key, source)
        self._precedence.put(candidate)
        if is_tested and is_final:
            self._compiled[key] = source.content
        else:
            self._waiting.setdefault(key, source)

    async def _candidate(self, source: PolicySource, is_tested: bool) -> tuple[Candidate, bool]:
        """(What asks to serve, whether that is final.)"""
        refused = refused_unread(source)
        if refused is not None:
            return refused, True
        found = await self._compile(source.key, source.texts, is_tested)
        return candidate_of(source, found), not found.is_unproved

    def _apply(self) -> None:
        """Hand over what changed, and report on every object whose standing its status does not tell."""
        serving, standings, tried = self._precedence.decide()
        self._hand_over(serving)
        self._try(tried)
        for key, standing in standings.items():
            candidate = self._precedence.get(key)
            rollout = None if candidate is None else candidate.rollout
            if self._reports.tell(self._seen[key], standing, rollout, self._suspensions.get(key)):
                self.rejected += standing.problem is not None

    def _hand_over(self, serving: dict[str, Profile]) -> None:
        replaced, removed = changes(self._serving, serving)
        self._serving = serving
        for profile in replaced:
            about = {"policy": profile.name, "hash": profile.policy_hash[:12]}
            logger.info("`%s` is served by policy `%s` from now on", profile.scheduler_name, profile.name, extra=about)
            self._put(ProfileReplaced(profile))
        for name in removed:
            logger.warning("no policy serves `%s` any more; its pods wait", name)
            self._put(ProfileRemoved(name))

    def _try(self, tried: Mapping[str, Candidate]) -> None:
        """Have the core try these candidates and no others. One that was suspended as it is stays suspended."""
        for name in self._tried.keys() - tried.keys():
            del self._tried[name]
            self._put(CandidateRemoved(name))
        for name, candidate in sorted(tried.items()):
            (profile,) = candidate.profiles
            assert candidate.rollout is not None
            suspension = self._suspensions.get(candidate.key)
            why = ""
            if suspension is not None and suspension.is_of(profile.policy_hash, candidate.rollout):
                why = suspension.why
            wanted = (candidate.key, profile.policy_hash, candidate.rollout, why)
            if self._tried.get(name) != wanted:
                self._tried[name] = wanted
                self._put(CandidateLoaded(profile, candidate.rollout, why))
        if tried:
            self._has_candidates.set()
        else:
            self._has_candidates.clear()

    async def _look_after_candidates(self) -> None:
        """See which candidates the core has suspended, and say from time to time how the others do."""
        while True:
            await self._has_candidates.wait()
            await self._clock.sleep(LOOK)
            self._report_progress()

    def _report_progress(self, is_last: bool = False) -> None:
        rollouts = self._rollouts()
        for name, (key, policy_hash, settings, why) in list(self._tried.items()):
            rollout = rollouts.get(name)
            if rollout is None or rollout.profile.policy_hash != policy_hash or rollout.settings != settings:
                continue  # not handed over yet
            if rollout.suspended and not why:
                self.suspended += 1
                self._tried[name] = (key, policy_hash, settings, rollout.suspended)
                self._suspensions[key] = Suspension(policy_hash, described(settings), rollout.suspended)
                self._reports.tell_suspended(self._seen[key], rollout)
            else:
                self._reports.tell_progress(self._seen[key], rollout, is_last)


def _tell_absent(error: ApiError) -> None:
    if error.status == HTTPStatus.NOT_FOUND:
        logger.info("SchedulingPolicies are not read: their CustomResourceDefinition is not in this cluster")
    else:
        logger.warning("SchedulingPolicies are not read: %s", error)
