"""Label selectors over pods (meta/v1 LabelSelector), compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policyengine.cluster.objects import LabelSelector, LabelSelectorRequirement
from policyengine.plugins.selectors.label_requirement import Requirement, requirement


@dataclass(frozen=True, slots=True)
class PodSelector:
    """All requirements must hold; `nothing` matches no labels at all. Equal selectors are equal and hash alike."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether it restricts nothing, and so matches every pod."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod, or a namespace, with these labels is selected."""
        if self.nothing:
            return False
        return all(requirement.holds(labels.get(requirement.key)) for requirement in self.requirements)

    def and_labels(self, labels: Mapping[str, str]) -> PodSelector:
        """Narrowed to these exact labels too."""
        if self.nothing:
            return self
        exact = tuple(Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items()))
        return PodSelector((*exact, *self.requirements))

    def and_selector(self, other: PodSelector) -> PodSelector:
        """What both select."""
        if self.nothing or other.nothing:
            return NOTHING
        return PodSelector((*self.requirements, *other.requirements))


NOTHING: Final = PodSelector(nothing=True)
EVERYTHING: Final = PodSelector()


def of_labels(labels: Mapping[str, str]) -> PodSelector:
    """Exactly these labels."""
    return EVERYTHING.and_labels(labels)


def compile_pod_selector(source: LabelSelector | None) -> PodSelector | str:
    """The selector, or what is wrong with it. None selects nothing, an empty one everything."""
    if source is None:
        return NOTHING
    requirements: list[Requirement] = []
    for part in _parts(source):
        compiled = requirement(part, comparing=False)
        if isinstance(compiled, str):
            return compiled
        requirements.append(compiled)
    return PodSelector(tuple(requirements))


def _parts(source: LabelSelector) -> Iterable[LabelSelectorRequirement]:
    for key, value in sorted(source.match_labels.items()):
        yield LabelSelectorRequirement(key=key, operator="In", values=(value,))
    yield from source.match_expressions
