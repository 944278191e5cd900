"""Label and field selectors: what they match, and parsing field selectors.

Parsing label selectors, e.g. `app=web,tier in (a, b),!x`, with the real server's refusals.

The grammar is that of k8s.io/apimachinery's labels.Parse; `in` and `notin` are words like any other where a key or
value is expected.

Fields an object can be selected by (`fieldSelector`), and how their values read as strings.

The lists are those of the kinds' field label conversions; every kind has metadata.name and metadata.namespace.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request
from policyengine.simulator.api_server.store import Object
from policyengine.simulator.api_server.validation.rules import (
    LABEL_VALUE,
    MAX_LABEL,
    VALUE_TEXT,
    qualified_name,
    quoted,
)


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


_TOKEN = re.compile(r"[^\s=!<>(),]+|[=!<>(),]+")
_SYMBOLS = ("==", "!=", "=", "!", "<", ">", "(", ")", ",")
BINARY = ("in", "notin", "=", "==", "!=", "gt", "lt")
_OPERATORS = {"=": "in", "==": "in", "in": "in", "!=": "notin", "notin": "notin", ">": "gt", "<": "lt"}


class SelectorError(ValueError):
    """No selector; the message is the real server's."""


def _tokens(text: str) -> list[str]:
    """Words and symbols; a run of symbols is cut from the left, the longest first."""
    found: list[str] = []
    for run in _TOKEN.findall(text):
        rest = run
        while rest and rest[0] in "=!<>(),":
            symbol = next(s for s in _SYMBOLS if rest.startswith(s))
            found.append(symbol)
            rest = rest[len(symbol) :]
        if rest:
            found.append(rest)
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._items = _tokens(text)
        self._at = 0

    def peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def next(self) -> str:
        token = self.peek()
        self._at += 1
        return token

    def selector(self) -> LabelSelector:
        """The whole text."""
        found: list[Requirement] = []
        while token := self.peek():
            if token != "!" and not _is_word(token):
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            after = self.next()
            if after not in ("", ","):
                raise SelectorError(f"found '{after}', expected: ',' or 'end of string'")
            if after == "," and self.peek() != "!" and not _is_word(self.peek()):
                raise SelectorError(f"found '{self.peek()}', expected: identifier after ','")
        return tuple(found)

    def _requirement(self) -> Requirement:
        try:
            return self._term()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from error

    def _term(self) -> Requirement:
        denied = self.peek() == "!"
        if denied:
            self.next()
        key = self._word()
        faults = qualified_name(key)
        if faults:
            raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(faults)}")
        if self.peek() in ("", ","):
            return Requirement(key, "!" if denied else "exists")
        operator = self.next()
        if operator not in _OPERATORS:
            raise SelectorError(f"found '{operator}', expected: {', '.join(BINARY)}")
        values = self._set() if operator in ("in", "notin") else [self._value()]
        _check_values(key, _OPERATORS[operator], sorted(set(values)))
        return Requirement(key, _OPERATORS[operator], frozenset(values))

    def _word(self) -> str:
        token = self.next()
        if not _is_word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _value(self) -> str:
        return "" if self.peek() in ("", ",") else self._word()

    def _set(self) -> list[str]:
        first = self.next()
        if first != "(":
            raise SelectorError(f"found '{first}' expected: '('")
        if self.peek() == ")":
            self.next()
            return [""]
        if self.peek() != "," and not _is_word(self.peek()):
            raise SelectorError(f"found '{self.peek()}', expected: ',', ')' or identifier")
        return self._listed()

    def _listed(self) -> list[str]:
        """Values between commas up to the closing parenthesis; an absent one is empty."""
        found: list[str] = []
        while True:
            token = self.next()
            if _is_word(token):
                found.append(token)
                if self.peek() not in (",", ")"):
                    raise SelectorError(f"found '{self.peek()}', expected: ',' or ')'")
                if self.peek() == ")":
                    self.next()
                    return found
            elif token != ",":
                raise SelectorError(f"found '{token}', expected: ',', or identifier")
            else:
                if not found or self.peek() in (",", ")"):
                    found.append("")
                if self.peek() == ")":
                    self.next()
                    return found


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!<>(),"


def _check_values(key: str, operator: str, values: list[str]) -> None:
    said: list[str] = []
    for at, value in enumerate(values):
        where: Json = value
        if operator in ("gt", "lt") and not re.fullmatch(r"[+-]?\d+", value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            said.append(f"values[{at}]: Invalid value: {quoted(where)}: {why}")
    for at, value in enumerate(values):
        faults = [] if len(value) <= MAX_LABEL else [f"must be no more than {MAX_LABEL} bytes"]
        faults += [] if re.fullmatch(LABEL_VALUE, value) else [VALUE_TEXT]
        if faults:
            said.append(f"values[{at}][{key}]: Invalid value: {quoted(value)}: {'; '.join(faults)}")
    if said:
        raise SelectorError(said[0] if len(said) == 1 else f"[{', '.join(said)}]")


def parse_labels(text: str) -> LabelSelector:
    """A label selector of the query; raises a 400."""
    try:
        return _Parser(text).selector()
    except SelectorError as error:
        raise bad_request(str(error)) from error


ALWAYS = ("metadata.name", "metadata.namespace")
EVENT_FIELDS = (
    *(
        f"involvedObject.{n}"
        for n in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    *("reason", "reportingComponent", "source", "type"),
)
SELECTABLE: dict[str, tuple[str, ...]] = {
    "Pod": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase", "name"),
    "Event": EVENT_FIELDS,
    "Secret": ("type",),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "Job": ("status.successful",),
    "Service": ("spec.clusterIP", "spec.type"),
    "CertificateSigningRequest": ("spec.signerName",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
}
# ReplicaSets have no conversion of their own for field labels, so the shared one answers.
FIELDS_OF_STRATEGY = frozenset({"ReplicaSet"})
MOVED = {"reportingComponent": "reportingComponent", "source": "source.component", "name": "metadata.name"}


def check_fields(kind: Kind, selector: FieldSelector) -> None:
    """Raise the 400 of a field this kind cannot be selected by."""
    allowed = SELECTABLE.get(kind.kind, ())
    if kind.custom is not None:
        listed = kind.custom.get("selectableFields")
        rows = listed if isinstance(listed, list) else []
        allowed = tuple(str(row.get("jsonPath", "")).lstrip(".") for row in rows if isinstance(row, dict))
    for term in selector:
        if term.path not in ALWAYS and term.path not in allowed:
            raise _unsupported(kind, term.path)


def _unsupported(kind: Kind, path: str) -> ApiError:
    """400, in the words of the kind's own conversion, or of the one all others share."""
    if kind.kind == "Job":
        return bad_request(f'field label "{path}" not supported for Job')
    if kind.kind == "ResourceSlice":
        return bad_request(f"field label not supported for {kind.api_version}, Kind={kind.kind}: {path}")
    if kind.kind in SELECTABLE and kind.kind not in FIELDS_OF_STRATEGY:
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels."""
    meta = cast(Object, obj["metadata"])
    return cast("dict[str, str]", meta.get("labels") or {})


def field_reader(obj: Object) -> FieldReader:
    """A function from a field's path to its value as a string, empty for an absent one."""

    def read(path: str) -> str:
        value: Json = obj
        for part in MOVED.get(path, path).split("."):
            if not isinstance(value, dict):
                return ""
            value = value.get(part)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None:
            # A selector compares with what an unset boolean would print.
            return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
        return str(value)

    return read
