"""Pod affinity and anti-affinity terms, compiled (core/v1 PodAffinityTerm).

matchLabelKeys and mismatchLabelKeys are not read here: the API server merges them into the term's selector when
the pod is created (KEP-3633).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from policyengine.cluster.pod_shape import PodShape
from policyengine.plugins.selectors.label_selector import MalformedError, PodSelector, compile_pod_selector


@dataclass(frozen=True, slots=True)
class Term:
    """Pods of these namespaces, or of namespaces so labelled, with these labels, within one value of `key`."""

    key: str
    selector: PodSelector
    namespaces: frozenset[str]
    namespace_selector: PodSelector

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Whether a pod there with these labels is meant."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term and what it is worth; negative for anti-affinity."""

    term: Term
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """All terms of one pod. `problem`: what is wrong with one, in which case there are none.

    Interned by `terms_of`, which compiles them once a shape and namespace: equal terms are nearly always one object, so
    identity may key a cache.
    """

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    problem: str | None = None


NO_TERMS: Final = Terms()


def terms_of(pod: PodInfo) -> Terms:
    """The pod's terms; its own namespace counts where a term names none."""
    return _terms(pod.shape, pod.namespace) if pod.shape.concerns_pods else NO_TERMS


@lru_cache(maxsize=4096)
def _terms(shape: PodShape, namespace: str) -> Terms:
    affinity = shape.spec.affinity
    near, away = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else (None, None)
    near, away = near or PodAffinity(), away or PodAffinity()
    try:
        return _interned(
            _compile_all(near.required_during_scheduling_ignored_during_execution, namespace),
            _compile_all(away.required_during_scheduling_ignored_during_execution, namespace),
            (
                *_weighted(near.preferred_during_scheduling_ignored_during_execution, namespace, 1),
                *_weighted(away.preferred_during_scheduling_ignored_during_execution, namespace, -1),
            ),
        )
    except MalformedError as error:
        return _interned(problem=str(error))


_interned = lru_cache(maxsize=4096)(Terms)


def _compile_all(sources: Iterable[PodAffinityTerm], namespace: str) -> tuple[Term, ...]:
    return tuple(_compile(source, namespace) for source in sources)


def _weighted(sources: Iterable[WeightedPodAffinityTerm], namespace: str, sign: int) -> tuple[WeightedTerm, ...]:
    return tuple(
        WeightedTerm(_compile(source.pod_affinity_term, namespace), source.weight * sign) for source in sources
    )


def _compile(source: PodAffinityTerm, namespace: str) -> Term:
    selectors: list[PodSelector] = []
    for selector in (source.label_selector, source.namespace_selector):
        compiled = compile_pod_selector(selector)
        if isinstance(compiled, str):
            raise MalformedError(f"pod affinity term on `{source.topology_key}`: {compiled}")
        selectors.append(compiled)
    named = frozenset(source.namespaces)
    if not named and source.namespace_selector is None:
        named = frozenset((namespace,))
    return Term(source.topology_key, selectors[0], named, selectors[1])
