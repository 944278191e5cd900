"""Label and field selectors: parsing them, with the real server's refusals, and what they match.

A label selector such as `app=web,tier in (a, b),!x` has the grammar of k8s.io/apimachinery's labels.Parse; `in` and
`notin` are words like any other where a key or value is expected. Which fields a kind can be selected by stands in
`kinds/schemas/resources.txt`; every kind has metadata.name and metadata.namespace.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policyengine.cluster.objects import LabelSelector, decode
from policyengine.plugins.selectors.label_selector import NOTHING, PodSelector, Requirement, compile_pod_selector
from policyengine.simulator.api_server.field_errors import LABEL_VALUE, MAX_LABEL, VALUE_TEXT, qualified_name, quoted
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request
from policyengine.simulator.api_server.storage import Object, child, metadata


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels."""
    return {name: str(value) for name, value in child(metadata(obj), "labels").items()}


def from_object(selector: Json) -> PodSelector:
    """A `metav1.LabelSelector`: none, or one that is wrong, matches nothing, an empty one everything."""
    found = compile_pod_selector(decode(LabelSelector, selector) if isinstance(selector, dict) else None)
    return NOTHING if isinstance(found, str) else found


# Parsing label selectors

_TOKEN = re.compile(r"==|!=|[=!<>(),]|[^\s=!<>(),]+")
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
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


def parse_labels(text: str) -> PodSelector:
    """A label selector of the query; raises a 400."""
    try:
        return PodSelector(tuple(_requirements(_Tokens(text))))
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
    if denied or tokens.first in ("", ","):
        return Requirement(key, "DoesNotExist" if denied else "Exists", frozenset())
    operator = tokens.take()
    if operator not in _OPERATORS:
        raise SelectorError(f"found '{operator}', expected: {_BINARY}")
    values = list(_set(tokens)) if operator in ("in", "notin") else [_value(tokens)]
    name = _OPERATORS[operator]
    _check_values(key, name, sorted(set(values)))
    return Requirement(key, name, frozenset(values), int(values[0]) if name in ("Gt", "Lt") else 0)


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
        if operator in ("Gt", "Lt") and not re.fullmatch(r"[+-]?\d+", value):
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
