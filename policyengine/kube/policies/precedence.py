"""Which policy serves which scheduler name: files, and ConfigMaps over them. Pure: no server, no compiler.

What holds here:
1. A scheduler name is served by the oldest accepted ConfigMap that asks for it, else by a file, else by nobody.
   Older is by creationTimestamp, then by namespace and name.
2. A ConfigMap is accepted whole or not at all: one that asks for a name an older one serves is rejected.
3. A ConfigMap whose new text is broken keeps serving what it served.
4. A candidate takes no scheduler name from another policy. A scheduler name that is served has one candidate, the
   oldest that is free of errors; broken text is not tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from policyengine.framework.profile import Profile
from policyengine.scheduler.rollout import RolloutSettings


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text was rejected, and where; 0 for a place that does not exist."""

    message: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Compiled:
    """What the texts of a ConfigMap compiled to: profiles, or the first error."""

    profiles: tuple[Profile, ...] = ()
    problem: Problem | None = None
    is_unproved: bool = False
    """Whether the problem is none of the texts', so that they are to be compiled again."""


Compile = Callable[[str, Mapping[str, str], bool], Awaitable[Compiled]]
"""A ConfigMap's `namespace/name`, its texts by their keys, whether to run the tests in them -> what they compiled to
together. Never raises for what the texts say."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ConfigMap that asks to serve."""

    namespace: str
    name: str
    created: str
    """creationTimestamp, RFC 3339 in whole seconds: its order is that of the text."""
    profiles: tuple[Profile, ...] = ()
    """Those of its last text without errors."""
    problem: Problem | None = None
    """What is wrong with its newest text."""
    rollout: RolloutSettings | None = None
    """How it is tried; None where it asks to serve."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a candidate."""

    accepted: bool
    policy_hash: str
    """Of what it serves now; empty where it serves nothing."""
    problem: Problem | None = None
    note: str = ""
    """What else is to be known of it."""


class Decision(NamedTuple):
    """What `Precedence` decides."""

    serving: dict[str, Profile]
    """Scheduler name -> who serves it."""
    standings: dict[str, Standing]
    """`namespace/name` -> what became of it."""
    tried: dict[str, Candidate]
    """Scheduler name -> who is tried beside the one who serves it."""


class Precedence:
    """Every policy there is, and who serves."""

    def __init__(self, files: Iterable[Profile] = ()) -> None:
        self._files = {profile.scheduler_name: profile for profile in files}
        self._candidates: dict[str, Candidate] = {}

    def get(self, key: str) -> Candidate | None:
        """The candidate of a ConfigMap, by `namespace/name`."""
        return self._candidates.get(key)

    def put(self, candidate: Candidate) -> None:
        """Take a candidate in, or its new version; one with a problem keeps its last good profiles."""
        before = self._candidates.get(candidate.key)
        if candidate.problem is not None and before is not None and _is_same(before, candidate):
            candidate = replace(candidate, profiles=before.profiles)
        self._candidates[candidate.key] = candidate

    def remove(self, key: str) -> None:
        """The ConfigMap is gone."""
        self._candidates.pop(key, None)

    def decide(self) -> Decision:
        """Who serves, who is tried, and what became of each ConfigMap."""
        found = Decision(dict(self._files), {}, {})
        candidates = sorted(self._candidates.values(), key=lambda one: (one.created, one.key))
        holders: dict[str, str] = {}
        for candidate in candidates:
            if candidate.rollout is None:
                found.standings[candidate.key] = _serve(candidate, found.serving, holders)
        for candidate in candidates:
            if candidate.rollout is not None:
                found.standings[candidate.key] = _try(candidate, candidate.rollout, found)
        return found


def _serve(candidate: Candidate, serving: dict[str, Profile], holders: dict[str, str]) -> Standing:
    """Have it serve its scheduler names, unless an older one holds any of them."""
    for profile in candidate.profiles:
        name = profile.scheduler_name
        if name in holders:
            message = f"scheduler `{name}` is served by the older ConfigMap `{holders[name]}`"
            return Standing(False, "", candidate.problem or Problem(message))
    for profile in candidate.profiles:
        serving[profile.scheduler_name] = profile
        holders[profile.scheduler_name] = candidate.key
    return Standing(candidate.problem is None, combined_hash(candidate.profiles), candidate.problem)


def _try(candidate: Candidate, rollout: RolloutSettings, found: Decision) -> Standing:
    """Have it tried beside the policy that serves, unless an older one is."""
    if candidate.problem is not None:
        return Standing(False, "", candidate.problem)
    (profile,) = candidate.profiles
    name = profile.scheduler_name
    if name in found.tried:
        problem = Problem(f"scheduler `{name}` has the older candidate `{found.tried[name].key}`")
        return Standing(False, "", problem)
    note = f"waits: no policy serves scheduler `{name}`"
    if name in found.serving:
        found.tried[name] = candidate
        note = f"{rollout.mode.value} beside policy `{found.serving[name].name}` of scheduler `{name}`"
    return Standing(True, profile.policy_hash, None, note)


def _is_same(before: Candidate, candidate: Candidate) -> bool:
    """Whether it is the same object, and asks to serve as it did before."""
    return before.created == candidate.created and before.rollout is None and candidate.rollout is None


def combined_hash(profiles: Iterable[Profile]) -> str:
    """The policy's hash; those of several policies joined by `+`."""
    return "+".join(profile.policy_hash for profile in profiles)


def changes(before: Mapping[str, Profile], after: Mapping[str, Profile]) -> tuple[list[Profile], list[str]]:
    """(profiles that are new or replaced, scheduler names nobody serves any more), both by scheduler name."""
    put = [
        profile
        for name, profile in sorted(after.items())
        if name not in before or before[name].policy_hash != profile.policy_hash
    ]
    return put, sorted(before.keys() - after.keys())
