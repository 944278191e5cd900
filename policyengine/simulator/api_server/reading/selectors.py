"""Label and field selectors: what they match, and parsing field selectors."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policyengine.simulator.api_server.statuses import Json, bad_request


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector; `operator` is one of in, notin, exists, !, gt, lt (`=` is in)."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet this term."""
        held = labels.get(self.key)
        if self.operator == "in":
            return held is not None and held in self.values
        if self.operator == "notin":
            return held is None or held not in self.values
        if self.operator == "exists":
            return held is not None
        if self.operator == "!":
            return held is None
        return _compare(held, self.operator, next(iter(self.values)))


def _compare(held: str | None, operator: str, bound: str) -> bool:
    try:
        number, limit = int(held or ""), int(bound)
    except ValueError:
        return False
    return number > limit if operator == "gt" else number < limit


LabelSelector = tuple[Requirement, ...]


def matches_labels(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether every term holds."""
    return all(term.matches(labels) for term in selector)


def from_object(selector: Json) -> LabelSelector | None:
    """A `metav1.LabelSelector` as terms; None (matches nothing) for none, every object for an empty one."""
    if not isinstance(selector, dict):
        return None
    labels = selector.get("matchLabels")
    found = [
        Requirement(k, "in", frozenset((str(v),))) for k, v in (labels if isinstance(labels, dict) else {}).items()
    ]
    names = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    expressions = selector.get("matchExpressions")
    for term in expressions if isinstance(expressions, list) else []:
        if isinstance(term, dict):
            values = term.get("values")
            given = frozenset(str(v) for v in values) if isinstance(values, list) else frozenset[str]()
            found.append(Requirement(str(term.get("key")), names.get(str(term.get("operator")), "in"), given))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    path: str
    value: str
    negated: bool


FieldSelector = tuple[FieldTerm, ...]
FieldReader = Callable[[str], str]


def parse_fields(text: str) -> FieldSelector:
    """A field selector of the query, e.g. `spec.nodeName=,status.phase!=Failed`; raises a 400."""
    found: list[FieldTerm] = []
    for term in _split_terms(text):
        for operator in ("!=", "==", "="):
            path, mark, value = term.partition(operator)
            if mark:
                found.append(FieldTerm(path, _unescape(value), operator == "!="))
                break
        else:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    return tuple(found)


def _split_terms(text: str) -> Sequence[str]:
    return [term for term in re.split(r"(?<!\\),", text) if term]


def _unescape(value: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", value)


def matches_fields(selector: FieldSelector, read: FieldReader) -> bool:
    """Whether every term holds; `read` gives a field's value as a string."""
    return all((read(term.path) == term.value) is not term.negated for term in selector)
