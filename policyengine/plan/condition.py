"""`--fail-on`: an expression of the policy language over the figures of the new run, and of the old one as `old.…`.

    waiting > 0 || p99(wait) > 1.2 * old

`p99(wait)` is `wait.p99`. `old` alone stands for the old run's value of the figure that comes first in the same
comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from policyengine.language.evaluate import EvaluationError, evaluate
from policyengine.language.parse import parse_expression
from policyengine.language.syntax.expression_nodes import Call, Expr, Name, Select, names_in, walk
from policyengine.plan.measures import PERCENTILES, measures
from policyengine.plan.rerun import Rerun
from policyengine.trials.ledger import Ledger

_PERCENTILE: Final = re.compile(rf"\b({'|'.join(PERCENTILES)})\(\s*(wait)\s*\)")
_FIGURE: Final = re.compile(r"(?<![.\w\"])(?!old\b)[a-z]\w*\b(?!\()(?:\.\w+|\[\"[^\"]*\"\])*")
_GROUPS: Final = ("gangs", "share", "spread", "wait")
"""Figures whose parts are always the same."""
_OLD: Final = re.compile(r"(?<![.\w])old\b(?![.\[\w])")


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
    text = "".join(_with_old(part) for part in re.split(r"(\|\||&&|[()])", _plain(expression)))
    try:
        return evaluate(text, {**new, "old": dict(old)})
    except EvaluationError as error:
        known = ", ".join(sorted(new))
        raise WrongCondition(f"`{expression}`: {error}; the figures are {known}, and `old.` before each") from None


def figures_in(expression: str) -> list[str]:
    """The figures of the new run that an expression names, as `wait.p99`."""
    return [found[0] for found in _FIGURE.finditer(_plain(expression))]


def _plain(expression: str) -> str:
    return _PERCENTILE.sub(r"\2.\1", expression)


def check(condition: str) -> None:
    """Whether it is a condition at all, before there are figures; of resources nobody knows yet which there will be.
    Raises `WrongCondition`."""
    none = measures(Rerun(Ledger(), 0.0))
    try:
        holds(condition, none, none)
    except WrongCondition as error:
        if not any(late in str(error) for late in ("no such key", "division by zero")):
            raise
    # What stands behind an operand that decides is not evaluated: a figure that is none would not be noticed there.
    syntax, _ = parse_expression(_plain(condition))
    for part in () if syntax is None else walk(syntax):
        if isinstance(part, Select) and isinstance(part.operand, Name):
            group = part.operand.name
            known: Mapping[str, Any] = none[group] if group in _GROUPS else {part.field: None}
            if part.field not in known:
                raise WrongCondition(f"`{condition}`: `{group}` has no `{part.field}`; there are {', '.join(known)}")
    for name in sorted(() if syntax is None else names_in(syntax) - _variables(syntax) - {"old", *none}):
        value(name, none, none)


def _variables(syntax: Expr) -> frozenset[str]:
    """The names that macros give to elements."""
    calls = (part for part in walk(syntax) if isinstance(part, Call) and part.target is not None)
    return frozenset(first.name for call in calls for first in call.args[:1] if isinstance(first, Name))


def _with_old(part: str) -> str:
    """A comparison, with what `old` alone stands for."""
    figure = _FIGURE.search(part)
    return part if figure is None else _OLD.sub(f"old.{figure[0]}", part)
