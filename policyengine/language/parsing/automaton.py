"""Runs the grammar's automaton over tokens. It keeps no tree: a rule's action is called as soon as it is known.

Beside each value its start is kept, so that an action gets the span of all it covers, signs included. A word that
could be a keyword is one only where the state has a use for that keyword, and a name otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from policyengine.language.parsing.grammar import Rule, table
from policyengine.language.parsing.terminals import OPERATORS
from policyengine.language.parsing.tokens import Token

Action = Callable[..., Any]
"""Makes a rule's value of where it starts and ends and of its children: tokens, values, None for an absent one.

The children's types follow from the grammar, which no type checker reads; actions declare what they take.
"""

_NAME_GOES_ON = OPERATORS | {"COMMA", "RBRACE", "ASC", "DESC", "MISSING", "ORDER", "FAIR", "BACKOFF", "FLUSH"}
"""What follows a name in an expression, but no keyword that may stand where a key of `order by` may."""


class Unexpected(Exception):
    """A token that fits nothing: its index, and the terminals that would have fitted."""

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__(index)
        self.index, self.expected = index, expected


def run(start: str, tokens: Sequence[Token], actions: Mapping[str, Action]) -> Any:
    """The value of a start rule over tokens, of which the last is an `$END`.

    Raises:
        Unexpected: the tokens do not fit the rule.
    """
    machine = _Machine(start, actions, tokens[0].start)
    stopped = machine.run(tokens)
    if stopped is None:
        return machine.values[-1]
    # A token that fits nothing may have caused reductions before it showed: ask a machine that never saw it.
    again = _Machine(start, _NoActions(), tokens[0].start)
    again.run(tokens, stopped)
    raise Unexpected(stopped, again.acceptable())


def expected_behind(start: str, tokens: Sequence[Token]) -> frozenset[str]:
    """The terminals that may come behind tokens a start rule begins with; none where these fit nothing already."""
    machine = _Machine(start, _NoActions(), 0)
    stopped = machine.run([*tokens, Token("$END", "", 0, 0)], len(tokens))
    return machine.acceptable() if stopped is None else frozenset()


class _NoActions(dict[str, Action]):
    """For a run that makes nothing."""

    def __missing__(self, rule: str) -> Action:
        return lambda *_: None


class _Machine:
    """The stacks of one parse."""

    __slots__ = ("actions", "end_state", "last_end", "starts", "states", "table", "values")

    def __init__(self, start: str, actions: Mapping[str, Action], at: int) -> None:
        self.table = table()
        self.actions = actions
        self.end_state = self.table.ends[start]
        self.states = [self.table.starts[start]]
        self.values: list[Any] = []
        self.starts: list[int] = []
        self.last_end = at

    def run(self, tokens: Sequence[Token], stop: int | None = None) -> int | None:
        """Feeds tokens, all or those before `stop`; the index of the one that fits nothing, or None."""
        rows, rules, keywords = self.table.rows, self.table.rules, self.table.contextual
        states, values, starts = self.states, self.values, self.starts
        for index, token in enumerate(tokens if stop is None else tokens[:stop]):
            kind = token.kind
            if is_keyword := kind in keywords:
                is_keyword = self.is_keyword(kind, tokens[index + 1].kind)
                kind = kind if is_keyword else "NAME"
            while states[-1] != self.end_state:
                move = rows[states[-1]].get(kind)
                if move is None:
                    if not is_keyword:
                        return index
                    # What the keyword completes, a name in its place completes too: nothing to undo.
                    kind, is_keyword = "NAME", False
                elif move >= 0:
                    states.append(move)
                    values.append(token)
                    starts.append(token.start)
                    self.last_end = token.end
                    break
                elif (action := rules[~move].action) is None:
                    states[-1] = _handed_on(states[-2], states[-1], kind)
                else:
                    self.reduce(rules[~move], action)
        return None

    def is_keyword(self, kind: str, following: str) -> bool:
        """Whether a word may be the keyword here; where an expression may begin too, what follows decides."""
        row = self.table.rows[self.states[-1]]
        return kind in row and (row.get("NAME", -1) < 0 or following not in _NAME_GOES_ON)

    def reduce(self, rule: Rule, action: str) -> None:
        """Replaces the rule's symbols on the stacks by its value."""
        states, values, starts, size = self.states, self.values, self.starts, rule.size
        end = self.last_end
        if size:
            first, children = starts[-size], values[-size:]
            del states[-size:], values[-size:], starts[-size:]
        else:
            first, children = end, []
        if not rule.whole:
            children = _children(rule, children)
        values.append(children if rule.inlined else self.actions[action](first, end, *children))
        starts.append(first)
        states.append(self.table.gotos[states[-1]][rule.origin])

    def acceptable(self) -> frozenset[str]:
        """The terminals the machine could go on with, beyond the state's own row: reductions are tried out."""
        return frozenset(kind for kind in self.table.rows[self.states[-1]] if self._would_take(kind))

    def _would_take(self, kind: str) -> bool:
        states = list(self.states)
        while (move := self.table.rows[states[-1]].get(kind)) is not None and move < 0:
            rule = self.table.rules[~move]
            if rule.size:
                del states[-rule.size :]
            states.append(self.table.gotos[states[-1]][rule.origin])
            if states[-1] == self.end_state:
                return True
        return move is not None


@cache
def _handed_on(below: int, state: int, kind: str) -> int:
    """The state above `below` after all rules that hand on a value before the token: a literal is a term, a sum, …"""
    tables = table()
    rows, rules, gotos, ends = tables.rows, tables.rules, tables.gotos[below], tables.end_states
    while state not in ends and (move := rows[state].get(kind, 0)) < 0 and rules[~move].action is None:
        state = gotos[rules[~move].origin]
    return state


def _children(rule: Rule, values: list[Any]) -> list[Any]:
    if not rule.spliced:
        return [None if at is None else values[at] for at in rule.picks]
    first = rule.picks[0]
    # A repetition grows the list it has so far: a copy at each step would cost the square of its length.
    children: list[Any] = values[first] if rule.inlined and first in rule.spliced else []
    for at in rule.picks[1:] if children else rule.picks:
        if at in rule.spliced:
            children += values[at]
        else:
            children.append(None if at is None else values[at])
    return children
