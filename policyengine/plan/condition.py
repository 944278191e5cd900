"""`--fail-on`: an expression of the policy language over the figures of the new run, and of the old one as `old.…`.

    waiting > 0 || p99(wait) > 1.2 * old

`p99(wait)` is `wait.p99`. `old` alone stands for the old run's value of the figure that comes first in the same
comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policyengine.language import syntax
from policyengine.language.evaluate import EvaluationError, evaluate
from policyengine.language.parsing.member_parser import parse_expression
from policyengine.plan.measures import PERCENTILES, measures
from policyengine.plan.rerun import Rerun
from policyengine.trials.ledger import Ledger

_PERCENTILE: Final = re.compile(rf"\b({'|'.join(PERCENTILES)})\(\s*((?:old\s*\.\s*)?wait)\s*\)")
_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")
_GROUPS: Final = ("gangs", "share", "spread", "wait")
"""Figures whose parts are always the same."""
_MAY_COME: Final = ("no such key", "division by zero")
"""What is wrong where there are no figures yet, and may be right where there are."""
_OLD: Final = "old"


class WrongCondition(ValueError):
    """An expression that cannot be evaluated; the message says why."""


def holds(condition: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the condition is true. Raises `WrongCondition`."""
    found = value(condition, old, new)
    if not isinstance(found, bool):
        what = "a group of figures" if isinstance(found, Mapping) else repr(found)
        raise WrongCondition(f"`{condition}` is {what}, and not true or false")
    return found


def value(expression: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> object:
    """What the expression comes to. Raises `WrongCondition`."""
    try:
        return evaluate(_with_old(expression), {**new, _OLD: dict(old)})
    except EvaluationError as error:
        known = ", ".join(sorted(new))
        raise WrongCondition(f"`{expression}`: {error}; the figures are {known}, and `old.` before each") from None


def figures_in(expression: str) -> list[str]:
    """The figures of the new run that an expression names, as `wait.p99`."""
    text = _plain(expression)
    tree = _parsed(text)
    return [] if tree is None else [_written(text, one) for one in _figures(tree, _variables(tree))]


def check(condition: str) -> None:
    """Whether it is a condition at all, before there are figures; of resources nobody knows yet which there will be.
    Raises `WrongCondition`."""
    none = measures(Rerun(Ledger(), 0.0))
    try:
        holds(condition, none, none)
    except WrongCondition as error:
        if not any(late in str(error) for late in _MAY_COME):
            raise
    # What stands behind an operand that decides is not evaluated: a figure that is none would not be noticed there.
    text = _with_old(condition)
    tree = _parsed(text)
    assert tree is not None
    variables, parts = _variables(tree), list(syntax.walk(tree))
    for part in parts:
        _check_figure(condition, part, none)
    names = syntax.names_in(tree) | {path[1] for part in parts if len(path := _path(part)) > 1 and path[0] == _OLD}
    for one in (*_operands(tree, text, variables), *sorted(names - variables - {_OLD, "", *none})):
        try:
            value(one, none, none)
        except WrongCondition as error:
            if not any(late in str(error) for late in _MAY_COME):
                raise


def _check_figure(condition: str, part: syntax.Expr, none: Mapping[str, Any]) -> None:
    """That what it names of a group is there."""
    group, *fields = [name for name in _path(part) if name != _OLD] or [""]
    if (
        isinstance(part, syntax.Name)
        or group not in none
        or (group not in _GROUPS and isinstance(none[group], Mapping))
    ):
        return
    known = none[group] if group in _GROUPS else {}
    if fields and fields[0] and fields[0] not in known:
        there = f"there are {', '.join(known)}" if known else "it is a number"
        raise WrongCondition(f"`{condition}`: `{group}` has no `{fields[0]}`; {there}")


def _operands(tree: syntax.Expr, text: str, variables: frozenset[str]) -> Iterator[str]:
    """What is evaluated only where something else decides so; without what a macro has of its elements."""
    for part in syntax.walk(tree):
        if isinstance(part, syntax.Conditional) or (isinstance(part, syntax.Binary) and part.op in ("&&", "||")):
            yield from (
                _written(text, one) for one in syntax.children(part) if syntax.names_in(one).isdisjoint(variables)
            )


def _plain(expression: str) -> str:
    return _PERCENTILE.sub(r"\2.\1", expression)


def _with_old(expression: str) -> str:
    """The expression, with what each `old` alone stands for: the old run's value of the first figure of its comparison,
    of all where it is in none."""
    text = _plain(expression)
    tree = _parsed(text)
    if tree is None:
        return text
    variables = _variables(tree)
    parts = [(tree, next(_figures(tree, variables), None))]
    found = []
    while parts:
        part, figure = parts.pop()
        if isinstance(part, syntax.Binary) and part.op in _COMPARISONS:
            figure = next(_figures(part, variables), None)
        if isinstance(part, syntax.Name) and part.name == _OLD and figure is not None:
            found.append((part.span, f"{_OLD}.{_written(text, figure)}"))
        elif not (_path(part) and _path(part)[0] == _OLD):
            parts += [(one, figure) for one in syntax.children(part)]
    for span, figure_text in sorted(found, key=lambda one: one[0].start, reverse=True):
        text = text[: span.start] + figure_text + text[span.end :]
    return text


def _parsed(text: str) -> syntax.Expr | None:
    tree, findings = parse_expression(text)
    return None if findings else tree


def _written(text: str, part: syntax.Expr) -> str:
    return text[part.span.start : part.span.end]


def _figures(tree: syntax.Expr, variables: frozenset[str]) -> Iterator[syntax.Expr]:
    """The figures of the new run that it names, as they are written, from the left."""
    parts = [tree]
    while parts:
        part = parts.pop()
        path = _path(part)
        if not path:
            parts += reversed(syntax.children(part))
        elif path[0] != _OLD and path[0] not in variables:
            yield part


def _path(part: syntax.Expr) -> list[str]:
    """`["quotas", "red", "cpu"]` of `quotas["red"].cpu`, "" for what is worked out; nothing for what is no name."""
    if isinstance(part, syntax.Name):
        return [part.name]
    if not isinstance(part, syntax.Select | syntax.Index) or not (path := _path(part.operand)):
        return []
    if isinstance(part, syntax.Select):
        return [*path, part.field]
    return [*path, part.key.value if isinstance(part.key, syntax.Literal) and isinstance(part.key.value, str) else ""]


def _variables(tree: syntax.Expr) -> frozenset[str]:
    """The names that macros give to elements."""
    calls = (part for part in syntax.walk(tree) if isinstance(part, syntax.Call) and part.target is not None)
    return frozenset(first.name for call in calls for first in call.args[:1] if isinstance(first, syntax.Name))
