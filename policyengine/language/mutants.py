"""Small changes to a checked policy that its tests should notice: operators, comparisons, constants, weights, and
requires, conditions and keys left out. Every mutant is well typed; they come in the order of the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from typing import Literal as OneOf

from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.table import select
from policyengine.language.ir.ir_walk import children, rebuilt
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, INT, Kind
from policyengine.language.values import display


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one thing changed."""

    policy: ir.Policy
    span: Span
    file: str
    """The file of the overlay or library it stands in, '' for the policy's own."""
    change: str
    """What was changed, in a few words: ``` `<` became `<=` ```."""


_FOLDS: Final = {ir.Fold.ALL: ir.Fold.EXISTS, ir.Fold.EXISTS: ir.Fold.ALL, ir.Fold.EXISTS_ONE: ir.Fold.EXISTS}
_NUMBERS: Final = frozenset({Kind.INT, Kind.DURATION, Kind.CPU, Kind.MEMORY, Kind.STORAGE})
_LARGEST: Final = 2**62
_WEIGHT_FACTOR: Final = 10

Changed = Iterator[tuple[Any, Span, str]]
"""(what stands in its place, where, what was changed)"""


def mutants(policy: ir.Policy) -> list[Mutant]:
    """All mutants of a policy, in the order of the text."""
    return sorted(_of_policy(policy), key=lambda one: (one.file, one.span.start, one.span.end))


# --- members ---------------------------------------------------------------------------------------------


def _of_policy(policy: ir.Policy) -> Iterator[Mutant]:
    groups: Mapping[str, Callable[[Any], Changed]] = {
        "lets": lambda let: _in_fields(let, "value"),
        "filters": _of_filter,
        "scores": _of_score,
        "gangs": lambda gang: _in_fields(gang, "when", "key", "min"),
        "quotas": lambda quota: _in_fields(quota, "when", "borrow"),
        "permits": lambda permit: _in_fields(permit, "when", "delay", "until"),
    }
    for name, changes in groups.items():
        members = getattr(policy, name)
        for at, member in enumerate(members):
            for changed, span, change in changes(member):
                yield Mutant(replace(policy, **{name: _with(members, at, changed)}), span, member.file, change)
    for at, score in enumerate(policy.scores):
        left = replace(policy, scores=_with(policy.scores, at))
        yield Mutant(left, score.span, score.file, f'score "{score.name}" left out')
    for queue, span, change in _of_queue(policy.queue):
        yield Mutant(replace(policy, queue=queue), span, "", change)


def _with(elements: Sequence[Any], at: int, *changed: Any) -> tuple[Any, ...]:
    """The elements with others in the place of one, or without it."""
    return (*elements[:at], *changed, *elements[at + 1 :])


def _in_each(owner: Any, name: str, changes: Callable[[Any], Changed]) -> Changed:
    """Changes of one element of a tuple field."""
    elements: tuple[Any, ...] = getattr(owner, name)
    for at, element in enumerate(elements):
        for changed, span, change in changes(element):
            yield replace(owner, **{name: _with(elements, at, changed)}), span, change


def _in_fields(owner: Any, *names: str) -> Changed:
    """Changes inside the expressions of a member, and a `when` left out."""
    for name in names:
        expr: ir.Expr | None = getattr(owner, name)
        if expr is None:
            continue
        for changed, span, change in _of_expr(expr):
            yield replace(owner, **{name: changed}), span, change
        if name == "when" and not isinstance(owner, ir.Quota):
            yield replace(owner, when=None), expr.span, "`when` left out"


def _of_filter(rule: ir.Filter) -> Changed:
    yield from _in_fields(rule, "when")
    yield from _in_each(rule, "requires", lambda require: _in_fields(require, "condition", "on_error"))
    always = ir.Const(type=BOOL, span=rule.span, value=True)
    for at, require in enumerate(rule.requires):
        kept = replace(require, condition=always, on_error=None, reads_node=False)
        yield replace(rule, requires=_with(rule.requires, at, kept)), require.condition.span, "`require` left out"


def _of_score(rule: ir.Score) -> Changed:
    yield from _in_fields(rule, "when", "value", "on_error")
    if isinstance(rule.weight, int):
        weight = rule.weight * _WEIGHT_FACTOR
        yield replace(rule, weight=weight), rule.span, f"weight {rule.weight} became {weight}"
    if rule.normalize is not ir.Normalize.NONE:
        word = "left out" if rule.reverse else "added"
        yield replace(rule, reverse=not rule.reverse), rule.span, f"`reverse` {word}"


def _of_queue(queue: ir.Queue) -> Changed:
    yield from _in_each(queue, "order", lambda key: _in_fields(key, "value"))
    for at, key in enumerate(queue.order):
        if key.descending and key.span == key.value.span:
            continue  # the order that counts where none is written
        turned = replace(key, descending=not key.descending)
        word = "`desc` became `asc`" if key.descending else "`asc` became `desc`"
        yield replace(queue, order=_with(queue.order, at, turned)), key.span, word
        yield replace(queue, order=_with(queue.order, at)), key.span, "key left out"


# --- expressions -----------------------------------------------------------------------------------------


def _of_expr(expr: ir.Expr) -> Changed:
    """The expression with one change in it or below."""
    yield from ((changed, expr.span, change) for changed, change in _here(expr))
    parts = children(expr)
    function = FUNCTIONS.get(expr.function) if isinstance(expr, ir.Call) else None
    fixed = frozenset[int]() if function is None else function.literals
    for at, part in enumerate(parts):
        if at in fixed:
            continue  # a pattern or time zone was tried when the policy was checked; another may be none
        for changed, span, change in _of_expr(part):
            yield rebuilt(expr, _with(parts, at, changed)), span, change


def _here(expr: ir.Expr) -> Iterator[tuple[ir.Expr, str]]:
    match expr:
        case ir.Call():
            yield from _of_call(expr)
        case ir.Logic():
            other: OneOf["&&", "||"] = "||" if expr.op == "&&" else "&&"
            yield replace(expr, op=other), f"`{expr.op}` became `{other}`"
        case ir.Conditional():
            swapped = replace(expr, then=expr.otherwise, otherwise=expr.then)
            yield swapped, "the branches of `?:` were swapped"
        case ir.Comprehension() if expr.fold in _FOLDS:
            fold = _FOLDS[expr.fold]
            yield replace(expr, fold=fold), f"`{expr.fold.value}` became `{fold.value}`"
        case ir.Const():
            for value in _other_values(expr):
                yield replace(expr, value=value), f"`{_shown(expr.value, expr)}` became `{_shown(value, expr)}`"


def _shown(value: object, expr: ir.Const) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else display(value, expr.type)


def _of_call(expr: ir.Call) -> Iterator[tuple[ir.Expr, str]]:
    types = [arg.type for arg in expr.args]
    if expr.function == "!_":
        yield expr.args[0], "`!` left out"
    row = FUNCTIONS.get(expr.function)
    for other in () if row is None else row.mutants:
        chosen = select(FUNCTIONS[other].overloads, types)
        if chosen is not None and chosen[1] == expr.type:
            yield replace(expr, function=other), f"`{expr.function.strip('_')}` became `{other.strip('_')}`"


def _other_values(expr: ir.Const) -> Iterator[object]:
    value = expr.value
    if isinstance(value, bool):
        yield not value
    elif expr.type == INT and isinstance(value, int):
        yield value + 1
    elif expr.type.kind in _NUMBERS and isinstance(value, int) and not expr.type.name:
        yield value * 2 if 0 < abs(value) < _LARGEST else value + 1
    elif isinstance(value, float):
        yield value * 2 if value else 1.0
    elif isinstance(value, str) and expr.type.kind is Kind.STRING:
        yield f"{value}~"
