"""`key operator values` over labels: the requirement that node and pod selectors are made of.

Source: apimachinery's labels.Requirement: which requirements are valid, and when one matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policyengine.cluster.objects import LabelSelector, SelectorRequirement

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_MAX_INT64: Final = 2**63 - 1
KEY_SCHEMA: Final[Mapping[str, object]] = {
    "type": "string",
    "pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$",
}
"""A label's key, as arguments hold it."""


def integer(text: str) -> int | None:
    """A decimal int64 as Go's strconv.ParseInt reads it; None when it is none."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_MAX_INT64 - 1 <= number <= _MAX_INT64 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """A valid requirement."""

    key: str
    operator: str
    values: frozenset[str]
    bound: int = 0
    """What Gt and Lt compare with."""

    def holds(self, value: str | None) -> bool:
        """Whether a label with this value, None when absent, meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else integer(value)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the requirement."""
        return self.holds(labels.get(self.key))


class MalformedError(ValueError):
    """A selector is none; the message says why."""


def requirement(source: SelectorRequirement, comparing: bool) -> Requirement:
    """The requirement. `comparing`: whether Gt and Lt are known here. Raises `MalformedError`."""
    problem = _problem(source.key, source.operator, source.values, comparing)
    if problem is not None:
        raise MalformedError(problem)
    bound = integer(source.values[0]) if source.operator in ("Gt", "Lt") else 0
    return Requirement(source.key, source.operator, frozenset(source.values), bound or 0)


_TERM: Final = re.compile(
    r"\s*(?:!\s*(?P<absent>[^\s=!<>(),]+)|(?P<key>[^\s=!<>(),]+)"
    r"(?:\s*(?P<equals>==?|!=)(?:\s*(?P<value>[^\s=!<>(),]+))?|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)"
    r"\s*(?P<end>,|$)"
)


def parse_requirements(text: str) -> tuple[Requirement, ...] | str:
    """The requirements of a selector as `kubectl -l` takes it (apimachinery's labels.Parse, without its comparisons),
    such as `stage in (test), !critical, tier!=web`; or the part of it that is none."""
    found: list[Requirement] = []
    at, goes_on = 0, True
    while goes_on:
        match = _TERM.match(text, at)
        rest = text[at:].strip() or text.strip()
        if match is None:
            return rest
        try:
            found.append(requirement(_written(match), comparing=False))
        except MalformedError:
            return rest
        at, goes_on = match.end(), match["end"] == ","
    return tuple(found)


def _written(match: re.Match[str]) -> SelectorRequirement:
    if match["absent"]:
        return SelectorRequirement(match["absent"], "DoesNotExist")
    if match["equals"]:
        return SelectorRequirement(match["key"], "NotIn" if match["equals"] == "!=" else "In", (match["value"] or "",))
    if match["set"]:
        values = tuple([value.strip() for value in match["values"].split(",")])
        return SelectorRequirement(match["key"], "In" if match["set"] == "in" else "NotIn", values)
    return SelectorRequirement(match["key"], "Exists")


def _problem(key: str, operator: str, values: Sequence[str], comparing: bool) -> str | None:
    if not _is_qualified_name(key):
        return f"`{key}` is not a label key"
    if operator in ("In", "NotIn"):
        if not values:
            return f"`{key}`: `{operator}` needs at least one value"
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            return f"`{key}`: `{operator}` takes no values"
    elif operator in ("Gt", "Lt") and comparing:
        if len(values) != 1 or integer(values[0]) is None:
            return f"`{key}`: `{operator}` needs exactly one integer"
    else:
        return f"`{key}`: `{operator}` is not an operator"
    for value in values:
        if value and not _NAME.fullmatch(value):
            return f"`{key}`: `{value}` is not a label value"
    return None


def _is_qualified_name(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


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
    labels = (SelectorRequirement(key, "In", (value,)) for key, value in sorted(source.match_labels.items()))
    try:
        return PodSelector(tuple(requirement(part, comparing=False) for part in (*labels, *source.match_expressions)))
    except MalformedError as error:
        return str(error)
