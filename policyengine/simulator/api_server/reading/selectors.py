"""Label and field selectors: parsing them, with the real server's refusals, and what they match.

A label selector such as `app=web,tier in (a, b),!x` has the grammar of k8s.io/apimachinery's labels.Parse; `in` and
`notin` are words like any other where a key or value is expected. Which fields a kind can be selected by stands in
`kinds/schemas/resources.txt`; every kind has metadata.name and metadata.namespace.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policyengine.simulator.api_server.field_errors import LABEL_VALUE, MAX_LABEL, VALUE_TEXT, qualified_name, quoted
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request
from policyengine.simulator.api_server.store import Object, child, metadata, objects


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector; `operator` is one of in, notin, exists, !, gt, lt (`=` is in)."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet this term."""
        held = labels.get(self.key)
        match self.operator:
            case "in":
                return held in self.values
            case "notin":
                return held not in self.values
            case "exists":
                return held is not None
            case "!":
                return held is None
        try:
            number, limit = int(held or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return number > limit if self.operator == "gt" else number < limit


LabelSelector = tuple[Requirement, ...]


def matches_labels(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether every term holds."""
    return all(term.matches(labels) for term in selector)


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels."""
    return {name: str(value) for name, value in child(metadata(obj), "labels").items()}


def from_object(selector: Json) -> LabelSelector | None:
    """A `metav1.LabelSelector` as terms; None (matches nothing) for none, every object for an empty one."""
    if not isinstance(selector, dict):
        return None
    names = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    found = [Requirement(k, "in", frozenset((str(v),))) for k, v in child(selector, "matchLabels").items()]
    for term in objects(selector.get("matchExpressions")):
        values = term.get("values")
        given = frozenset(map(str, values)) if isinstance(values, list) else frozenset[str]()
        found.append(Requirement(str(term.get("key")), names.get(str(term.get("operator")), "in"), given))
    return tuple(found)


# Parsing label selectors

_TOKEN = re.compile(r"==|!=|[=!<>(),]|[^\s=!<>(),]+")
_OPERATORS = {"in": "in", "notin": "notin", "=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}
_BINARY = "in, notin, =, ==, !=, gt, lt"


class SelectorError(ValueError):
    """No selector; the message is the real server's."""


class _Tokens:
    """The words and symbols that are left; the end is an empty one."""

    def __init__(self, text: str) -> None:
        self._left: list[str] = [*_TOKEN.findall(text), ""]

    @property
    def first(self) -> str:
        return self._left[0]

    def take(self) -> str:
        return self._left.pop(0) if len(self._left) > 1 else ""

    def word(self) -> str:
        token = self.take()
        if not _is_word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return token


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!<>(),"


def parse_labels(text: str) -> LabelSelector:
    """A label selector of the query; raises a 400."""
    try:
        return tuple(_requirements(_Tokens(text)))
    except SelectorError as error:
        raise bad_request(str(error)) from error


def _requirements(tokens: _Tokens) -> Iterator[Requirement]:
    while tokens.first:
        if tokens.first != "!" and not _is_word(tokens.first):
            raise SelectorError(f"found '{tokens.first}', expected: !, identifier, or 'end of string'")
        try:
            yield _requirement(tokens)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from error
        after = tokens.take()
        if after not in ("", ","):
            raise SelectorError(f"found '{after}', expected: ',' or 'end of string'")
        if after and tokens.first != "!" and not _is_word(tokens.first):
            raise SelectorError(f"found '{tokens.first}', expected: identifier after ','")


def _requirement(tokens: _Tokens) -> Requirement:
    denied = tokens.first == "!"
    if denied:
        tokens.take()
    key = tokens.word()
    faults = qualified_name(key)
    if faults:
        raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(faults)}")
    if tokens.first in ("", ","):
        return Requirement(key, "!" if denied else "exists")
    operator = tokens.take()
    if operator not in _OPERATORS:
        raise SelectorError(f"found '{operator}', expected: {_BINARY}")
    values = list(_set(tokens)) if operator in ("in", "notin") else [_value(tokens)]
    _check_values(key, _OPERATORS[operator], sorted(set(values)))
    return Requirement(key, _OPERATORS[operator], frozenset(values))


def _value(tokens: _Tokens) -> str:
    return "" if tokens.first in ("", ",") else tokens.word()


def _set(tokens: _Tokens) -> Iterator[str]:
    """Values between commas in parentheses; an absent one is empty."""
    token = tokens.take()
    if token != "(":
        raise SelectorError(f"found '{token}' expected: '('")
    while token != ")":
        if token in "(," and (tokens.first in (",", ")")):
            yield ""
        elif _is_word(tokens.first):
            yield tokens.take()
        else:
            raise SelectorError(f"found '{tokens.first}', expected: ',', ')' or identifier")
        token = tokens.take()
        if token not in (",", ")"):
            raise SelectorError(f"found '{token}', expected: ',' or ')'")


def _check_values(key: str, operator: str, values: list[str]) -> None:
    said: list[str] = []
    for at, value in enumerate(values):
        if operator in ("gt", "lt") and not re.fullmatch(r"[+-]?\d+", value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            said.append(f"values[{at}]: Invalid value: {quoted(value)}: {why}")
    for at, value in enumerate(values):
        faults = [] if len(value) <= MAX_LABEL else [f"must be no more than {MAX_LABEL} bytes"]
        faults += [] if re.fullmatch(LABEL_VALUE, value) else [VALUE_TEXT]
        if faults:
            said.append(f"values[{at}][{key}]: Invalid value: {quoted(value)}: {'; '.join(faults)}")
    if said:
        raise SelectorError(said[0] if len(said) == 1 else f"[{', '.join(said)}]")


# Field selectors


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    path: str
    value: str
    negated: bool


FieldSelector = tuple[FieldTerm, ...]
_FIELD_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
MOVED = {"source": "source.component", "name": "metadata.name"}
"""Fields that are selected by another name than the one they lie under."""


def parse_fields(text: str) -> FieldSelector:
    """A field selector of the query, e.g. `spec.nodeName=,status.phase!=Failed`; raises a 400."""
    found: list[FieldTerm] = []
    for term in filter(None, re.split(r"(?<!\\),", text)):
        parts = _FIELD_TERM.fullmatch(term)
        if parts is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = parts.groups()
        found.append(FieldTerm(path, re.sub(r"\\([\\,=])", r"\1", value), operator == "!="))
    return tuple(found)


def matches_fields(selector: FieldSelector, obj: Object) -> bool:
    """Whether every term holds."""
    return all((_read(obj, term.path) == term.value) is not term.negated for term in selector)


def _read(obj: Object, path: str) -> str:
    """A field's value as a string, empty for an absent one."""
    value: Json = obj
    for part in MOVED.get(path, path).split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool) or path in ("spec.unschedulable", "spec.hostNetwork"):
        # A selector compares with what an unset boolean would print.
        return "true" if value else "false"
    return "" if value is None else str(value)


def check_fields(kind: Kind, selector: FieldSelector) -> None:
    """Raise the 400 of a field this kind cannot be selected by."""
    for term in selector:
        if term.path not in ("metadata.name", "metadata.namespace", *kind.fields):
            raise _unsupported(kind, term.path)


def _unsupported(kind: Kind, path: str) -> ApiError:
    """400, in the words of the kind's own conversion, or of the one all others share."""
    if kind.kind == "Job":
        return bad_request(f'field label "{path}" not supported for Job')
    if kind.kind == "ResourceSlice":
        return bad_request(f"field label not supported for {kind.api_version}, Kind={kind.kind}: {path}")
    if kind.fields and kind.custom is None and kind.kind != "ReplicaSet":
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
