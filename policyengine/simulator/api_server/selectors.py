"""Label and field selectors: parsing, with the real server's refusals, and matching."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request

_TOKEN = re.compile(r"\s*(==|!=|=|<|>|!|\(|\)|,|[^\s=!<>(),]+)\s*")
_QUALIFIED = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"(?:[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


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


class _Tokens:
    def __init__(self, text: str) -> None:
        self._items = _TOKEN.findall(text)
        if "".join(self._items) != re.sub(r"\s+", "", text):
            raise bad_request(f"unable to parse requirement: found '{text}'")
        self._at = 0

    def peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def next(self) -> str:
        token = self.peek()
        self._at += 1
        return token


def _key(token: str) -> str:
    if not _QUALIFIED.fullmatch(token):
        raise bad_request(f"unable to parse requirement: found '{token}', expected: identifier")
    return token


def _check_value(key: str, value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise bad_request(
            f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": a valid label must be an '
            "empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return value


def _values(tokens: _Tokens, key: str) -> frozenset[str]:
    if tokens.next() != "(":
        raise bad_request("unable to parse requirement: found '', expected: '('")
    found: set[str] = set()
    expecting = True
    while (token := tokens.next()) != ")":
        if token == "":
            raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")
        if token == ",":
            if expecting:
                found.add("")
            expecting = True
            continue
        found.add(_check_value(key, token))
        expecting = False
    if expecting:
        found.add("")
    return frozenset(found)


def _requirement(tokens: _Tokens) -> Requirement:
    if tokens.peek() in ("(", ")", ","):
        raise bad_request(f"found '{tokens.peek()}', expected: !, identifier, or 'end of string'")
    if tokens.peek() == "!":
        tokens.next()
        return Requirement(_key(tokens.next()), "!")
    key = _key(tokens.next())
    operator = tokens.peek()
    if operator in ("", ","):
        return Requirement(key, "exists")
    tokens.next()
    if operator in ("in", "notin"):
        return Requirement(key, operator, _values(tokens, key))
    if operator in ("=", "==", "!="):
        value = "" if tokens.peek() in ("", ",") else _check_value(key, tokens.next())
        return Requirement(key, "notin" if operator == "!=" else "in", frozenset((value,)))
    if operator in ("<", ">"):
        return Requirement(key, "lt" if operator == "<" else "gt", frozenset((tokens.next(),)))
    raise bad_request(f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def parse_labels(text: str) -> LabelSelector:
    """A label selector of the query, e.g. `app=web,tier in (a, b),!x`; raises a 400."""
    if not text.strip():
        return ()
    tokens = _Tokens(text)
    found = [_requirement(tokens)]
    while (token := tokens.next()) == ",":
        found.append(_requirement(tokens))
    if token:
        raise bad_request(f"unable to parse requirement: found '{token}', expected: ',' or 'end of string'")
    return tuple(found)


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


def unsupported_field(path: str) -> ApiError:
    """400: this kind cannot be selected by that field."""
    return bad_request(f"field label not supported: {path}")
