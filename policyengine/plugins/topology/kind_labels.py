"""Which kinds of pods a selector, or the labels of a pod, can concern: so that not every kind is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from policyengine.plugins.selectors.label_requirement import Requirement
from policyengine.plugins.selectors.pod_selector import PodSelector

if TYPE_CHECKING:
    from policyengine.plugins.selectors.affinity_term import Terms
    from policyengine.plugins.topology.pod_index import PodKind

Label = tuple[str, str]
_Kinds = dict["PodKind", None]
"""An ordered set."""


class KindLabels:
    """The kinds by each of their labels, and by a label that the selectors of their own terms require.

    What is answered may be too much, never too little: whoever asks matches the selectors themselves.
    """

    def __init__(self) -> None:
        self._having: dict[Label, _Kinds] = {}
        self._requiring: dict[Label | None, _Kinds] = {}
        """None: kinds with a term that requires no label to have a certain value."""

    def add(self, kind: PodKind) -> None:
        """A kind came."""
        for label in kind.labels.items():
            self._having.setdefault(label, {})[kind] = None
        for required in _required_by(kind.terms):
            self._requiring.setdefault(required, {})[kind] = None

    def remove(self, kind: PodKind) -> None:
        """A kind that is here is gone."""
        for label in kind.labels.items():
            _drop(self._having, label, kind)
        for required in _required_by(kind.terms):
            _drop(self._requiring, required, kind)

    def clear(self) -> None:
        """All kinds are gone."""
        self._having.clear()
        self._requiring.clear()

    def selected_by(self, selector: PodSelector) -> Iterable[PodKind] | None:
        """The kinds that the selector may match; None: any."""
        if selector.nothing:
            return ()
        exact = [one for one in selector.requirements if one.operator == "In"]
        if not exact:
            return None
        found = [[kinds for label in _labels_of(one) if (kinds := self._having.get(label))] for one in exact]
        return _union(min(found, key=lambda groups: sum(map(len, groups))))

    def meaning(self, labels: Mapping[str, str]) -> Iterable[PodKind]:
        """The kinds with a term that may mean a pod with these labels."""
        groups = (self._requiring.get(label) for label in (None, *labels.items()))
        return _union([kinds for kinds in groups if kinds])


def _required_by(terms: Terms) -> set[Label | None]:
    """For each term labels of which every pod it means has one; None where there is no saying."""
    every = (*terms.affinity, *terms.anti_affinity, *(one.term for one in terms.preferred))
    required: set[Label | None] = set()
    for selector in {term.selector for term in every if not term.selector.nothing}:
        exact = [one for one in selector.requirements if one.operator == "In"]
        required.update(_labels_of(min(exact, key=lambda one: len(one.values))) if exact else (None,))
    return required


def _labels_of(requirement: Requirement) -> Iterable[Label]:
    return ((requirement.key, value) for value in requirement.values)


def _union(groups: list[_Kinds]) -> Iterable[PodKind]:
    return groups[0] if len(groups) == 1 else {kind: None for kinds in groups for kind in kinds}


def _drop(groups: dict[Label, _Kinds] | dict[Label | None, _Kinds], label: Label | None, kind: PodKind) -> None:
    kinds = groups[label]  # type: ignore[index]
    del kinds[kind]
    if not kinds:
        del groups[label]  # type: ignore[arg-type]
