"""The fewest changes after which a pod, or a pod and its gang, is placed: part of `policyengine explain`. Pure.

Rules:
1. Every suggestion was tried. `suggest_played` plays the whole queue with the change applied, and the pod must have its
   node in the end; `suggest` (`--alone`) has the profile evaluate the pod.
2. Changes are sought one at a time, then in twos and threes; as soon as some number of them helps, larger sets are not
   looked at. What the evaluator finds no room for is not played.
3. A pod that has a node without the change and none with it is told (`costs`); suggestions that cost nobody come first.
4. A pod that is deleted and has an owner is made again: its twin waits in the play.
5. The work is bounded: `PLAYS` plays, as long as they take `STEPS` messages together, and `TRIED` sets of changes a
   round, fewer of a pod whose spec is long. `suggest` ends when it is told to, with what was found by then: who asks
   has something else to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, Final

import msgspec

from policyengine.cluster.kinds import NODES, PODS
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod, PodStatus
from policyengine.cluster.view import ClusterView
from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.forecast import Fate, Forecast, played
from policyengine.diagnosis.remedies import remedies
from policyengine.diagnosis.what_if import Attempt, WhatIf, waiting_mates, with_gang
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial_cluster import uid_of

DEPTH: Final = 3
"""Changes at most, and rounds of them; a round may make several."""
BREADTH: Final = 12
"""Sets of changes that are carried into the next round."""
SHOWN: Final = 4
"""Suggestions made for a pod."""
PLAYS: Final = 60
STEPS: Final = 1_000_000
"""Bounds of the work for one pod: 18 plays of 5,000 nodes and 50,000 pods."""
TRIED: Final = 500
"""Sets of changes that are tried a round."""
SPECS: Final = 1 << 20
"""Bytes of the specs that are tried a round: a pod may have thousands of selectors, each of which could be dropped, and
each set of changes is as much work as all that are left."""
PREEMPTING: Final = 8
"""Sets of changes a round after which it is asked whether the policy would make room for the pod."""
FAILURES: Final = 3
"""Plays a round of changes of one sort that do not place the pod."""
LEARNT_FROM: Final = 4
"""Plays a round that did not place the pod and are asked what else it would take."""


def suggest(
    evaluator: Evaluator, pod: PodInfo, view: ClusterView, is_over: Callable[[], bool] = lambda: False
) -> list[dict[str, Any]]:
    """For a pod by itself: `[{change, changes: [{kind, …, kubectl?}], fits, chosen}]`, the smallest first; empty where
    the pod fits already, where its spec is malformed, and where nothing of what was tried helps.

    `fits` is the number of nodes that would fit, `chosen` the one that would be taken. The view is unchanged after.
    `is_over` is asked again and again whether to end.
    """
    what_if, start = WhatIf(view, lambda _, profile: Evaluator(profile) if profile else evaluator), Attempt(pod)
    if pod.problem is not None or what_if.fits(start):
        return []
    return _Search(None, is_over).run(start, what_if)


def suggest_played(
    objects: Sequence[DumpedObject],
    profiles: Sequence[Profile],
    now: float,
    pod: str,
    progress: Callable[[float], None] = lambda share: None,
) -> list[dict[str, Any]]:
    """For a pod (`namespace/name`) among all that wait, and its gang: as `suggest`, `chosen` being the node in the
    play; with `costs: {pod: what becomes of it}` where others pay. `progress` is told which share of the plays is done.

    Empty where the pod is placed without a change, is being deleted or evicted, or does not wait.
    """
    plays = _Plays(objects, profiles, now, pod, progress)
    start = plays.start()
    return [] if start is None else _Search(plays).run(*start)


@dataclass(frozen=True, slots=True)
class _Found:
    """A set of changes that helps."""

    attempt: Attempt
    chosen: str
    fits: int
    costs: Mapping[str, str] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        changes = self.attempt.changes
        entry = {
            "change": ", and ".join(change.text for change in changes),
            "changes": [
                {"kind": change.kind, **change.detail, **({"kubectl": change.kubectl} if change.kubectl else {})}
                for change in changes
            ],
            "fits": self.fits,
            "chosen": self.chosen,
        }
        return entry | ({"costs": dict(self.costs)} if self.costs else {})


class _Search:
    """Rounds of changes, each tried."""

    def __init__(self, plays: _Plays | None, is_over: Callable[[], bool] = lambda: False) -> None:
        self._plays = plays
        self._is_over = is_over
        self._most = TRIED
        self._seen: set[frozenset[tuple[str, str, str]]] = set()

    def run(self, start: Attempt, ground: WhatIf) -> list[dict[str, Any]]:
        """The smallest sets that help, few of them."""
        front, learnt = [start], list[Attempt]()
        self._most = min(TRIED, max(BREADTH, SPECS // len(msgspec.json.encode(start.pod.shape.spec))))
        for _ in range(DEPTH):
            tried = self._bounded(option for attempt in front for option in remedies(attempt, ground))
            new = sorted(self._unseen([*tried, *learnt]), key=lambda option: option.cost)
            helpful = self._helpful(new, ground)
            found, learnt = self._tried(helpful)
            if found:
                cheapest = sorted(found, key=lambda one: (bool(one.costs), one.attempt.cost))
                return [one.entry() for one in cheapest[:SHOWN]]
            useless = {id(option) for option, _, _ in helpful}
            front = [option for option in new if id(option) not in useless][:BREADTH]
        return []

    def _bounded(self, options: Iterable[Attempt]) -> Iterable[Attempt]:
        """Not too many, and none when the end is asked for."""
        return takewhile(lambda _: not self._is_over(), islice(options, self._most))

    def _unseen(self, tried: Iterable[Attempt]) -> Iterable[Attempt]:
        """Each set of changes once, in whatever order they were made."""
        for option in tried:
            key = frozenset((change.kind, change.subject, change.text) for change in option.changes)
            if 0 < len(option.changes) == len(key) <= DEPTH and key not in self._seen:
                self._seen.add(key)
                yield option

    def _helpful(self, new: Sequence[Attempt], ground: WhatIf) -> list[tuple[Attempt, str, int]]:
        """Those after which the pod finds room as far as the evaluator sees: (changes, node, how many fit)."""
        found, preempting = [], 0
        for option in self._bounded(new):
            placed = ground.placement(option)
            if placed is not None:
                found.append((option, *placed))
            elif self._plays is not None and preempting < PREEMPTING:
                preempting += 1
                if ground.preempts(option):
                    found.append((option, "", 0))
        return sorted(found, key=lambda one: (one[0].cost, -one[2]))

    def _tried(self, helpful: Sequence[tuple[Attempt, str, int]]) -> tuple[list[_Found], list[Attempt]]:
        """Those that help, one of each sort; and what else it would take where one does not."""
        found: list[_Found] = []
        sorts: list[frozenset[tuple[str, str]]] = []
        learnt: list[Attempt] = []
        failed: Counter[frozenset[tuple[str, str]]] = Counter()
        for option, chosen, fits in helpful:
            sort = frozenset((change.kind, change.subject) for change in option.changes)
            if failed[sort] >= FAILURES or any(known <= sort for known in sorts):
                continue
            one: _Found | None = _Found(option, chosen, fits)
            if self._plays is not None:
                if len([known for known in found if not known.costs]) >= SHOWN or not self._plays.left:
                    break
                one, ground = self._plays.verdict(option, fits)
                failed[sort] += one is None
                if ground is not None and failed.total() <= LEARNT_FROM:
                    learnt += remedies(replace(option, pod=ground[0].pod), ground[1])
            if one is not None:
                found.append(one)
                sorts += [] if one.costs else [sort]
        return found, learnt


class _Plays:
    """The whole queue, played again and again with changes applied."""

    def __init__(
        self,
        objects: Sequence[DumpedObject],
        profiles: Sequence[Profile],
        now: float,
        pod: str,
        progress: Callable[[float], None],
    ) -> None:
        self._objects, self._profiles, self._now, self._pod = objects, profiles, now, pod
        self._progress = progress
        self._count, self._steps = PLAYS, STEPS
        self._targets: frozenset[str] = frozenset()
        """UIDs of the pods that are to be placed."""
        self._before: Forecast = Forecast(())
        self._there = frozenset(
            uid_of_object(one) or one.object.metadata.name
            for one in objects
            if one.kind == NODES.kind or (one.kind == PODS.kind and one.object.spec.node_name)
        )

    @property
    def left(self) -> bool:
        """Whether the bounds allow another play."""
        return self._count > 0 and self._steps >= len(self._objects)

    def start(self) -> tuple[Attempt, WhatIf] | None:
        """What the play without changes ends with; None where nothing is to be done."""
        self._before, state = self._play(self._objects, self._profiles)
        try:
            told = self._before[self._pod]
        except KeyError:
            return None
        pod = state.view.pods.get(told.uid)
        if pod is None or pod.problem is not None or told.what in (Fate.BOUND, Fate.TERMINATING, Fate.EVICTED):
            return None
        if _is_prepared(state, told.uid):
            return None
        self._targets = frozenset([pod.uid, *(mate.uid for mate in waiting_mates(state.view, pod))])
        return self._ground(state, pod, self._profiles)

    def verdict(self, attempt: Attempt, fits: int) -> tuple[_Found | None, tuple[Attempt, WhatIf] | None]:
        """What the play with the changes comes to: the suggestion where the pod has its node, else the ground that it
        ends with."""
        profiles = [
            attempt.profile if attempt.profile and attempt.profile.scheduler_name == one.scheduler_name else one
            for one in self._profiles
        ]
        gone = {one.object.metadata.key for one in self._objects if uid_of_object(one) in attempt.gone}
        after, state = self._play(self._changed(attempt), profiles)
        told = after[self._pod]
        pod = state.view.pods.get(told.uid)
        if told.what is Fate.BOUND or _is_prepared(state, told.uid):
            return _Found(attempt, told.node, max(1, fits), self._costs(after, gone)), None
        return None, None if pod is None else self._ground(state, pod, profiles)

    def _play(self, objects: Sequence[DumpedObject], profiles: Sequence[Profile]) -> tuple[Forecast, SchedulerState]:
        self._count -= 1
        steps = 0

        def count(state: SchedulerState, uids: Sequence[str]) -> None:
            nonlocal steps
            steps += 1 + len(uids)

        found = played(objects, profiles, self._now, tried=count)
        self._steps -= len(objects) + steps
        self._progress(min(1.0, max(1 - self._count / PLAYS, 1 - self._steps / STEPS)))
        return found

    def _ground(self, state: SchedulerState, pod: PodInfo, profiles: Sequence[Profile]) -> tuple[Attempt, WhatIf]:
        evaluators = {one.scheduler_name: Evaluator(one) for one in profiles}

        def evaluator_of(name: str, profile: Profile | None) -> Evaluator | None:
            instead = profile is not None and profile.scheduler_name == name
            return Evaluator(profile) if instead and profile is not None else evaluators.get(name)

        what_if, refused = with_gang(WhatIf(state.view, evaluator_of, tuple(evaluators), there=self._there), pod)
        mates = waiting_mates(state.view, pod)
        alike = all(mate.namespace == pod.namespace for mate in mates)
        return Attempt(refused, tuple(sorted(one.name for one in (pod, *mates))) if mates and alike else ()), what_if

    def _changed(self, attempt: Attempt) -> list[DumpedObject]:
        """The objects with the changes, pods last."""
        made = {(one.kind, one.object.metadata.key): one for one in attempt.made}
        made |= {(NODES.kind, name): DumpedObject(NODES.kind, node) for name, node in attempt.nodes.items()}
        kept, pods = [], []
        for one in self._objects:
            uid = uid_of_object(one)
            if uid in attempt.gone:
                pods += (
                    [DumpedObject(PODS.kind, _again(one.object, self._now))] if one.object.metadata.controller else []
                )
            elif uid in self._targets:
                pods.append(DumpedObject(PODS.kind, attempt.applied_to(one.object)))
            elif one.kind == PODS.kind:
                pods.append(one)
            else:
                kept.append(made.pop((one.kind, one.object.metadata.key), one))
        new = [one for one in made.values() if one.kind != PODS.kind]
        members = [attempt.applied_to(one.object) for one in made.values() if one.kind == PODS.kind]
        return [*kept, *new, *pods, *(DumpedObject(PODS.kind, pod) for pod in members)]

    def _costs(self, after: Forecast, gone: set[str]) -> dict[str, str]:
        """Who has a node without the changes and none with them, and what becomes of him instead; those apart whom
        the changes name."""
        now = {one.pod: one.what for one in after.pods}
        lost = {
            one.pod: now[one.pod].value
            for one in self._before.pods
            if one.what is Fate.BOUND and now.get(one.pod, Fate.BOUND) is not Fate.BOUND
        }
        evicted = {pod: Fate.EVICTED.value for pod in after.evicted if pod not in self._before.evicted}
        return {pod: what for pod, what in (lost | evicted).items() if pod not in gone}


def uid_of_object(one: DumpedObject) -> str:
    """A pod's UID; "" for any other object."""
    return uid_of(one.object) if one.kind == PODS.kind else ""


def _is_prepared(state: SchedulerState, uid: str) -> bool:
    """Whether the pod has its node and waits for its volumes or devices, which no play makes."""
    return state.place(uid) == "waiting at prebind"


def _again(pod: Pod, now: float) -> Pod:
    """What the pod's owner makes in its place."""
    name = f"{pod.metadata.name}-again"
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=name,
        uid=f"uid of {pod.metadata.namespace}/{name}",
        creation_timestamp=format_time(now),
        deletion_timestamp=None,
    )
    return msgspec.structs.replace(
        pod, metadata=metadata, spec=msgspec.structs.replace(pod.spec, node_name=""), status=PodStatus()
    )
