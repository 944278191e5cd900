"""Which policy serves which scheduler name: files, and objects of the API over them. Pure: no server, no compiler.

What holds here:
1. A scheduler name is served by the oldest accepted object that asks for it, else by a file, else by nobody.
   Older is by creationTimestamp, then by namespace and name, then a ConfigMap before a SchedulingPolicy.
2. An object is accepted whole or not at all: one that asks for a name an older one serves is rejected.
3. An object whose new text is broken keeps serving what it served.
4. A candidate takes no scheduler name from another policy. A scheduler name that is served has one candidate, the
   oldest that is free of errors; broken text is not tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from policyengine.framework.profile import Profile
from policyengine.scheduler.rollout import RolloutSettings


class SourceKey(NamedTuple):
    """Which object carries policies; in the order of precedence."""

    namespace: str
    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} `{self.namespace}/{self.name}`"


class Finding(NamedTuple):
    """One thing that is wrong, and where; 0 for a place that does not exist."""

    file: str
    line: int
    column: int
    code: str
    message: str


INVALID, FORBIDDEN, CONFLICT = "Invalid", "Forbidden", "Conflict"
TESTS_FAILED, UNPROVED = "TestsFailed", "Unproved"
"""Reasons of problems, as a condition of a SchedulingPolicy names them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text was rejected, and where; 0 for a place that does not exist."""

    message: str
    line: int = 0
    column: int = 0
    reason: str = INVALID
    findings: tuple[Finding, ...] = ()
    """The first of all that is wrong."""
    count: int = 0
    """How many findings there are."""

    @classmethod
    def of_json(cls, values: Any) -> Problem:
        """The problem whose fields, in order, came as JSON."""
        message, line, column, reason, findings, count = values
        return cls(message, line, column, reason, tuple(Finding(*one) for one in findings), count)


@dataclass(frozen=True)
class Compiled:
    """What the texts of an object compiled to: profiles, or what is wrong."""

    profiles: tuple[Profile, ...] = ()
    problem: Problem | None = None

    @property
    def is_unproved(self) -> bool:
        """Whether the problem is none of the texts', so that they are to be compiled again."""
        return self.problem is not None and self.problem.reason == UNPROVED


Compile = Callable[[SourceKey, Mapping[str, str], bool], Awaitable[Compiled]]
"""Which object they are of, the texts by their keys, whether to run the tests in them -> what they compiled to
together. Never raises for what the texts say."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object that asks to serve."""

    key: SourceKey
    created: str
    """creationTimestamp, RFC 3339 in whole seconds: its order is that of the text."""
    profiles: tuple[Profile, ...] = ()
    """Those of its last text without errors."""
    problem: Problem | None = None
    """What is wrong with its newest text."""
    rollout: RolloutSettings | None = None
    """How it is tried; None where it asks to serve."""


SERVING, LAST_GOOD, WAITING, REJECTED = "Serving", "LastGood", "Waiting", "Rejected"
"""How a policy serves, as a condition of a SchedulingPolicy names it; or `Shadow`, `Canary`."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a candidate."""

    how: str
    """Whether it serves, and how."""
    profiles: tuple[Profile, ...] = ()
    """What it serves now, or is tried with."""
    problem: Problem | None = None
    note: str = ""
    """What else is to be known of it."""

    @property
    def policy_hash(self) -> str:
        """The policy's hash; those of several policies joined by `+`; empty where it serves nothing."""
        return "+".join(profile.policy_hash for profile in self.profiles)


class Decision(NamedTuple):
    """What `Precedence` decides."""

    serving: dict[str, Profile]
    """Scheduler name -> who serves it."""
    standings: dict[SourceKey, Standing]
    """What became of each object."""
    tried: dict[str, Candidate]
    """Scheduler name -> who is tried beside the one who serves it."""


class Precedence:
    """Every policy there is, and who serves."""

    def __init__(self, files: Iterable[Profile] = ()) -> None:
        self._files = {profile.scheduler_name: profile for profile in files}
        self._candidates: dict[SourceKey, Candidate] = {}

    def get(self, key: SourceKey) -> Candidate | None:
        """The candidate of an object."""
        return self._candidates.get(key)

    def put(self, candidate: Candidate) -> None:
        """Take a candidate in, or its new version; one with a problem keeps its last good profiles."""
        before = self._candidates.get(candidate.key)
        if candidate.problem is not None and before is not None and _is_same(before, candidate):
            candidate = replace(candidate, profiles=before.profiles)
        self._candidates[candidate.key] = candidate

    def remove(self, key: SourceKey) -> None:
        """The object is gone."""
        self._candidates.pop(key, None)

    def decide(self) -> Decision:
        """Who serves, who is tried, and what became of each object."""
        found = Decision(dict(self._files), {}, {})
        candidates = sorted(self._candidates.values(), key=lambda one: (one.created, one.key))
        holders: dict[str, SourceKey] = {}
        for candidate in candidates:
            if candidate.rollout is None:
                found.standings[candidate.key] = _serve(candidate, found.serving, holders)
        for candidate in candidates:
            if candidate.rollout is not None:
                found.standings[candidate.key] = _try(candidate, candidate.rollout, found)
        return found


def _serve(candidate: Candidate, serving: dict[str, Profile], holders: dict[str, SourceKey]) -> Standing:
    """Have it serve its scheduler names, unless an older one holds any of them."""
    for profile in candidate.profiles:
        name = profile.scheduler_name
        if name in holders:
            message = f"scheduler `{name}` is served by the older {holders[name]}"
            return Standing(REJECTED, (), candidate.problem or Problem(message, reason=CONFLICT))
    for profile in candidate.profiles:
        serving[profile.scheduler_name] = profile
        holders[profile.scheduler_name] = candidate.key
    how = SERVING if candidate.problem is None else LAST_GOOD if candidate.profiles else REJECTED
    return Standing(how, candidate.profiles, candidate.problem)


def _try(candidate: Candidate, rollout: RolloutSettings, found: Decision) -> Standing:
    """Have it tried beside the policy that serves, unless an older one is."""
    if candidate.problem is not None:
        return Standing(REJECTED, (), candidate.problem)
    (profile,) = candidate.profiles
    name = profile.scheduler_name
    if name in found.tried:
        older = found.tried[name].key
        problem = Problem(f"scheduler `{name}` has the older candidate `{older[0]}/{older[1]}`", reason=CONFLICT)
        return Standing(REJECTED, (), problem)
    how, note = WAITING, f"waits: no policy serves scheduler `{name}`"
    if name in found.serving:
        found.tried[name] = candidate
        how = rollout.mode.value.capitalize()
        note = f"{rollout.mode.value} beside policy `{found.serving[name].name}` of scheduler `{name}`"
    return Standing(how, candidate.profiles, None, note)


def _is_same(before: Candidate, candidate: Candidate) -> bool:
    """Whether it is the same object, and asks to serve as it did before."""
    return before.created == candidate.created and before.rollout is None and candidate.rollout is None


def changes(before: Mapping[str, Profile], after: Mapping[str, Profile]) -> tuple[list[Profile], list[str]]:
    """(profiles that are new or replaced, scheduler names nobody serves any more), both by scheduler name."""
    put = [
        profile
        for name, profile in sorted(after.items())
        if name not in before or before[name].policy_hash != profile.policy_hash
    ]
    return put, sorted(before.keys() - after.keys())
