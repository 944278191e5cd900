"""Small changes to a checked policy that its tests should notice: operators, comparisons, constants, texts, weights,
amounts, times and defaults changed; requires, conditions, keys, plugins, arguments and whole rules left out.

Every mutant is well typed, but a plugin may refuse what is left of its arguments. They come in the order of the text.
A mutant is built when its policy is asked for: all of those of a large policy at once take no more memory than the
policy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple
from typing import Literal as OneOf

from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.checking.param_checks import outside
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.table import select
from policyengine.language.ir.ir_walk import children, known_amount, rebuilt
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DURATION, INT, Kind
from policyengine.language.values import display


class _Place(NamedTuple):
    """Where a part of a policy stands: what makes its owner with another part, and the owner's place."""

    put: Callable[..., Any]
    above: _Place | None


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one thing changed."""

    span: Span
    file: str
    """The file of the overlay or library it stands in, '' for the policy's own."""
    change: str
    """What was changed, in a few words: ``` `<` became `<=` ```."""
    _place: _Place = field(repr=False, compare=False)
    _instead: tuple[Any, ...] = field(repr=False, compare=False)
    """What stands in the place."""

    @property
    def policy(self) -> ir.Policy:
        """The changed policy, built anew each time."""
        changed, place = self._place.put(*self._instead), self._place.above
        while place is not None:
            changed, place = place.put(changed), place.above
        policy: ir.Policy = changed
        return policy


MOST: Final = 10_000
"""Mutants of one policy; of a policy with more, those of the first members."""
_FOLDS: Final = {ir.Fold.ALL: ir.Fold.EXISTS, ir.Fold.EXISTS: ir.Fold.ALL, ir.Fold.EXISTS_ONE: ir.Fold.EXISTS}
_NUMBERS: Final = frozenset({Kind.INT, Kind.DURATION, Kind.CPU, Kind.MEMORY, Kind.STORAGE})
_LARGEST: Final = 2**62
_WEIGHT_FACTOR: Final = 10
_MEMBERS: Final = ("lets", "filters", "scores", "gangs", "quotas", "permits", "logs", "annotations", "params", "uses")
_SETTINGS: Final = ("queue", "preempt")
"""What a policy has one of, or none."""
_LEFT_OUT: Final = frozenset({"when", "waits", "by", "borrow", "timeout", "victims", "max_victims", "fair_by"})
"""Expressions that a member may do without; but a gang its timeout, and a quota the only one of `by` and `when`."""
_WRITTEN: Final = {"max_victims": "maxVictims", "fair_by": "fair by"}

Changed = Iterator[tuple[_Place, tuple[Any, ...], Span, str]]
"""(a place, what stands in it instead, where it is in the text, what was changed)"""


def mutants(policy: ir.Policy) -> list[Mutant]:
    """The mutants of a policy, `MOST` at most, in the order of the text."""
    found = islice(_of_policy(policy), MOST)
    return sorted(found, key=lambda one: (one.file, one.span.start, one.span.end))


def _of_policy(policy: ir.Policy) -> Iterator[Mutant]:
    for name in _MEMBERS:
        for at, member in enumerate(getattr(policy, name)):
            for found, instead, span, change in _of_member(member, _element(policy, name, at, None)):
                yield Mutant(span, getattr(member, "file", ""), change, found, instead)
    for name, span in policy.disabled.items():
        left = {plugin: place for plugin, place in policy.disabled.items() if plugin != name}
        yield Mutant(span, "", f"`disable {name}` left out", _field(policy, "disabled", None), (left,))
    for name in _SETTINGS:
        if (member := getattr(policy, name)) is not None:
            for found, instead, span, change in _of_member(member, _field(policy, name, None)):
                yield Mutant(span, "", change, found, instead)


def _field(owner: Any, name: str, above: _Place | None) -> _Place:
    return _Place(lambda new: replace(owner, **{name: new}), above)


def _element(owner: Any, name: str, at: int, above: _Place | None) -> _Place:
    """The place of one element of a tuple field."""
    return _Place(lambda *new: replace(owner, **{name: _with(getattr(owner, name), at, *new)}), above)


def _with(elements: Sequence[Any], at: int, *changed: Any) -> tuple[Any, ...]:
    """The elements with others in the place of one, or without it."""
    return (*elements[:at], *changed, *elements[at + 1 :])


def _of_member(member: Any, place: _Place) -> Changed:
    """A member, or a part of one, with one change in its expressions and texts, or in what is its own."""
    for name in member.__struct_fields__:
        part, own = getattr(member, name), _field(member, name, place)
        if isinstance(part, ir.Expr):
            yield from _of_expr(part, own)
            if name in _LEFT_OUT and not _is_needed(member, name):
                yield own, (None,), part.span, f"`{_WRITTEN.get(name, name)}` left out"
        elif isinstance(part, ir.Template):
            yield from _of_template(part, own)
        elif isinstance(part, tuple):
            for at, one in enumerate(part):
                if isinstance(one, ir.Require | ir.OrderKey):
                    yield from _of_member(one, _element(member, name, at, place))
    if type(member) in _OWN:
        yield from _OWN[type(member)](member, place)
    if isinstance(member, ir.Score | ir.Gang | ir.Quota | ir.Permit):
        yield place, (), member.span, f'{type(member).__name__.lower()} "{member.name}" left out'


def _is_needed(member: Any, name: str) -> bool:
    return (isinstance(member, ir.Gang) and name == "timeout") or (
        isinstance(member, ir.Quota) and name == "when" and member.by is None
    )


def _of_require(require: ir.Require, place: _Place) -> Changed:
    always = ir.Const(type=BOOL, span=require.span, value=True)
    kept = replace(require, condition=always, on_error=None, reads_node=False)
    yield place, (kept,), require.condition.span, "`require` left out"


def _of_score(rule: ir.Score, place: _Place) -> Changed:
    if isinstance(rule.weight, int):
        weight = rule.weight * _WEIGHT_FACTOR
        yield _field(rule, "weight", place), (weight,), rule.span, f"weight {rule.weight} became {weight}"
    elif rule.weight is None:
        yield _field(rule, "weight", place), (1,), rule.span, "`tier` became `weight 1`"
    if rule.normalize is not ir.Normalize.NONE:
        word = "left out" if rule.reverse else "added"
        yield _field(rule, "reverse", place), (not rule.reverse,), rule.span, f"`reverse` {word}"


def _of_quota(rule: ir.Quota, place: _Place) -> Changed:
    for name in ("guarantee", "limit"):
        amounts: ir.Amounts = getattr(rule, name) or ()
        for at, (resource, amount) in enumerate(amounts):
            own = _element(rule, name, at, place)
            yield own, (), rule.span, f"`{resource}` of `{name}` left out"
            known = known_amount(amount)
            if known is None:
                yield from _of_expr(amount, _Place(lambda new, resource=resource: (resource, new), own))
            elif name == "limit" and 0 < known < _LARGEST:
                doubled = (resource, replace(amount, value=known * 2))
                yield own, (doubled,), rule.span, f"`{resource}` of `limit` doubled"


def _of_param(param: ir.Param, place: _Place) -> Changed:
    """Another default that the param may have."""
    const = ir.Const(type=param.type, span=param.span, value=param.default)
    some = [param.default[:-1]] if isinstance(param.default, list | tuple) and param.default else []
    for value in param.values or (*_other_values(const), *some, param.minimum, param.maximum):
        if value not in (None, param.default) and not outside(param, value):
            change = f"default `{_shown(param.default, const)}` became `{_shown(value, const)}`"
            yield _field(param, "default", place), (value,), param.span, change
            return


def _of_use(use: ir.PluginUse, place: _Place) -> Changed:
    yield place, (), use.span, f"`use {use.name}` left out"
    if isinstance(use.weight, int) and use.weight:
        weight = use.weight * _WEIGHT_FACTOR
        yield _field(use, "weight", place), (weight,), use.span, f"weight {use.weight} became {weight}"
    for name in use.arguments:
        left = {key: value for key, value in use.arguments.items() if key != name}
        yield _field(use, "arguments", place), (left,), use.span, f"argument `{name}` left out"


def _of_queue(queue: ir.Queue, place: _Place) -> Changed:
    for name, span in queue.written:
        seconds = getattr(queue, name)
        shown = [display(round(value * 10**9), DURATION) for value in (seconds, seconds * 2)]
        yield _field(queue, name, place), (seconds * 2,), span, f"`{shown[0]}` became `{shown[1]}`"
    if queue.fair_by is None:
        return
    for at, (tenant, weight) in enumerate(queue.fair_weights):
        changed = (tenant, weight * _WEIGHT_FACTOR)
        change = f"weight {weight:g} of `{tenant}` became {changed[1]:g}"
        yield _element(queue, "fair_weights", at, place), (changed,), queue.fair_by.span, change


def _of_key(key: ir.OrderKey, place: _Place) -> Changed:
    if key.descending and key.span == key.value.span:
        return  # the order that counts where none is written
    word = "`desc` became `asc`" if key.descending else "`asc` became `desc`"
    yield _field(key, "descending", place), (not key.descending,), key.span, word
    if key.missing_first:
        yield _field(key, "missing_first", place), (False,), key.span, "`missing first` left out"
    yield place, (), key.span, "key left out"


_OWN: Final[Mapping[type, Callable[[Any, _Place], Changed]]] = {
    ir.Require: _of_require,
    ir.Score: _of_score,
    ir.Quota: _of_quota,
    ir.Param: _of_param,
    ir.PluginUse: _of_use,
    ir.Queue: _of_queue,
    ir.OrderKey: _of_key,
    ir.OnLog: lambda rule, place: iter([(place, (), rule.span, f"`on {rule.point}` left out")]),
    ir.BindAnnotation: lambda rule, place: iter([(place, (), rule.span, f"annotation `{rule.key}` left out")]),
}
"""What else changes in a member than its expressions and texts."""


def _of_template(template: ir.Template, place: _Place) -> Changed:
    """A text with one change in it."""
    for at, part in enumerate(template.parts):
        own = _element(template, "parts", at, place)
        if isinstance(part, ir.Expr):
            yield from _of_expr(part, own)
        elif part:
            yield own, (f"{part}~",), template.span, f"`{_quoted(part)}` became `{_quoted(f'{part}~')}`"


def _of_expr(expr: ir.Expr, place: _Place) -> Changed:
    """The expression with one change in it or below."""
    pending = [(expr, place)]
    while pending:
        expr, place = pending.pop()
        for changed, change in _here(expr):
            yield place, (changed,), expr.span, change
        function = FUNCTIONS.get(expr.function) if isinstance(expr, ir.Call) else None
        # A pattern or time zone was tried when the policy was checked; another may be none.
        fixed = frozenset[int]() if function is None else function.literals
        parts = [(at, part) for at, part in enumerate(children(expr)) if at not in fixed]
        pending += [(part, _Place(partial(_with_part, expr, at), place)) for at, part in reversed(parts)]


def _with_part(expr: ir.Expr, at: int, part: ir.Expr) -> ir.Expr:
    return rebuilt(expr, _with(children(expr), at, part))


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
    return _quoted(value) if isinstance(value, str) else display(value, expr.type)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


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
