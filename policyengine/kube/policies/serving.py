"""Which policies serve, of objects that somebody holds in hand: a dump, or lists of a cluster.

By the rules of a scheduler that has just started (`precedence`): a text that a status speaks of is taken at its word,
any other is tested first. What a broken object served before, nobody knows here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS, SCHEDULING_POLICIES
from policyengine.cluster.objects import decode
from policyengine.compiler.assemble import PluginRegistry
from policyengine.diagnosis.dump import objects_in
from policyengine.framework.profile import Profile
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.config_map import LABEL_SELECTOR, ConfigMapSource
from policyengine.kube.policies.precedence import Candidate, Compiled, Precedence, Problem
from policyengine.kube.policies.rollout_settings import BadSetting
from policyengine.kube.policies.scheduling_policy import SchedulingPolicySource
from policyengine.kube.policies.sources import ACCEPTED, REJECTED, SUSPENDED, PolicySource


@dataclass(frozen=True, slots=True)
class Serving:
    """Who serves."""

    profiles: tuple[Profile, ...]
    """One for each scheduler name, sorted by it: as they are handed to a scheduler, which gives turns in this order."""
    refused: tuple[str, ...] = ()
    """What does not, and why: a sentence each."""


def serving(sources: Iterable[PolicySource], registry: PluginRegistry) -> Serving:
    """The policies that serve, of objects that carry some.

    Where a scheduler has answered any of them, those in namespaces in which it has answered none are not read by it,
    and so not here.
    """
    known = list(sources)
    answered = {source.metadata.namespace for source in known if source.is_answered}
    precedence = Precedence()
    told: list[str] = []
    for source in known:
        if answered and source.metadata.namespace not in answered:
            told.append(f"{source.key} is in a namespace of which no scheduler reads policies")
        else:
            precedence.put(_candidate(source, registry))
    found = precedence.decide()
    told += [
        f"{key} does not serve: {standing.problem.message}"
        for key, standing in sorted(found.standings.items())
        if standing.problem is not None
    ]
    return Serving(tuple(profile for _, profile in sorted(found.serving.items())), tuple(told))


def serving_in(cluster: Mapping[str, Any], registry: PluginRegistry) -> Serving:
    """The policies that serve, of those in a dump. Raises `ObjectError`."""
    return serving(_sources_in(objects_in(cluster)), registry)


def _sources_in(objects: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[PolicySource]:
    """Those of (kind, object) that carry policies. Raises `ObjectError`."""
    name, value = LABEL_SELECTOR.split("=")
    for kind, item in objects:
        if kind == SCHEDULING_POLICIES.kind:
            yield SchedulingPolicySource(decode(SCHEDULING_POLICIES.type, item))
        elif kind == CONFIG_MAPS.kind:
            config_map = decode(CONFIG_MAPS.type, item)
            if config_map.metadata.labels.get(name) == value:
                yield ConfigMapSource(config_map)


def _candidate(source: PolicySource, registry: PluginRegistry) -> Candidate:
    """What the object asks for, as far as its texts and its status go."""
    refused = refused_unread(source)
    if refused is not None:
        return refused
    verdict = source.verdict
    if verdict == REJECTED:
        return candidate_of(source, Compiled(problem=Problem(source.said or "it was rejected")))
    return candidate_of(source, compiled(source.texts, registry, is_tested=verdict not in (ACCEPTED, SUSPENDED)))


def refused_unread(source: PolicySource) -> Candidate | None:
    """The object as one that asks to serve, where it is refused before any text is read; None where it is not."""
    about = source.key, source.metadata.creation_timestamp or ""
    try:
        rollout = source.settings
    except BadSetting as error:
        return Candidate(*about, problem=Problem(str(error)))
    return Candidate(*about, problem=Problem(source.unusable), rollout=rollout) if source.unusable else None


def candidate_of(source: PolicySource, found: Compiled) -> Candidate:
    """The object as one that asks to serve, by what all its texts compiled to together: the first error rejects them
    all. Raises `BadSetting`, where `refused_unread` has refused it."""
    rollout = source.settings
    problem = found.problem or _unfit(source.KIND.kind, found.profiles, is_tried=rollout is not None)
    created = source.metadata.creation_timestamp or ""
    return Candidate(source.key, created, () if problem else found.profiles, problem, rollout)


def _unfit(kind: str, profiles: Sequence[Profile], is_tried: bool) -> Problem | None:
    """Why the profiles of one object cannot serve together, or be tried."""
    if not profiles:
        return Problem(f"the {kind} has no policy")
    if is_tried and len(profiles) > 1:
        names = ", ".join(f"`{profile.name}`" for profile in profiles)
        return Problem(f"a candidate is one policy, and the {kind} has {len(profiles)}: {names}")
    first: dict[str, Profile] = {}
    for profile in profiles:
        earlier = first.setdefault(profile.scheduler_name, profile)
        if earlier is not profile:
            both = f"`{earlier.name}` and `{profile.name}`"
            return Problem(f"scheduler `{profile.scheduler_name}` is served by two policies: {both}")
    return None
