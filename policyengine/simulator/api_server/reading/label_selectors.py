"""Parsing label selectors, e.g. `app=web,tier in (a, b),!x`, with the real server's refusals.

The grammar is that of k8s.io/apimachinery's labels.Parse; `in` and `notin` are words like any other where a key or
value is expected.
"""

import re

from policyengine.simulator.api_server.reading.selectors import LabelSelector, Requirement
from policyengine.simulator.api_server.statuses import Json, bad_request
from policyengine.simulator.api_server.validation.metadata import (
    LABEL_VALUE,
    MAX_LABEL,
    VALUE_TEXT,
    qualified_name,
    quoted,
)

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
