"""Scores and their weights: which of them rank nodes, and how finely."""

from __future__ import annotations

import math
from typing import NamedTuple

from policyengine.language import ir
from policyengine.language.bounds import MOST_SHOWN
from policyengine.language.diagnostics import wrapped
from policyengine.language.functions.answer_bounds import Interval, hull
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Related, Severity, Subject, rule
from policyengine.language.syntax import Span
from policyengine.language.types import DOUBLE, INT, Kind, Shape


@rule("PE3101", Severity.WARNING)
def constant_score(subject: Subject) -> Findings:
    """a score that is the same for every node

    A score ranks nodes. One that reads nothing of the node adds the same number to all of them, so it never changes
    where a pod goes; normalised, it is the same for all as well.

    How it is known: nothing of the node is read and nothing is drawn; or the bounds of the value, from what Kubernetes
    lets its fields be and through each operation, are one number.
    """
    for score in subject.own(subject.policy.scores):
        low, high, _ = _points(subject, score)
        parts = walk(score.value, subject.let_value)
        drawn = any(isinstance(part, ir.Call) and part.function == "random" for part in parts)
        if score.value.shape is Shape.SCALAR and not drawn:
            yield Finding(
                f"`{score.name}` is the same for every node, so it ranks none", score.value.span, steps=_reads(score)
            )
        elif low == high:
            message = f"`{score.name}` is always {low:g}, so it ranks no node"
            yield Finding(message, score.value.span, steps=_steps_to(subject, score))


def _reads(score: ir.Score) -> tuple[Related, ...]:
    paths = [(part.span, ".".join(part.path)) for part in walk(score.value) if isinstance(part, ir.Field)]
    read = (Related(span, f"reads `{path}`, which is the same for every node") for span, path in paths[:MOST_SHOWN])
    return (*read, Related(score.value.span, "reads nothing of the node"))


def _steps_to(subject: Subject, score: ir.Score) -> tuple[Related, ...]:
    """How the bounds of a score come about."""
    steps = subject.bounds.steps(score.value)
    if subject.bounds.may_fail(score.value):
        counts = subject.bounds.steps(score.on_error) if score.on_error is not None else ()
        steps += (Related(score.value.span, "may fail, and counts as 0" if not counts else "may fail"), *counts)
    return steps


_NARROW = 5.0
"""Points: less than this is a sliver."""


@rule("PE3102", Severity.WARNING)
def sliver_score(subject: Subject) -> Findings:
    """a score that uses only a sliver of 0 to 100

    A score counts in whole points from 0 to 100. One that stays within a few of them hardly ranks: `ratio(a, b)` lies
    between 0 and 1, so it is 0 for every node but a full one. Write `100 * ratio(a, b)`, or `normalize minmax`.

    How it is known: by the bounds of the value, as for PE3101.
    """
    for score in subject.own(subject.policy.scores):
        low, high, _ = _points(subject, score)
        low, high = max(low, 0.0), min(high, 100.0)
        if score.normalize is not ir.Normalize.NONE or score.weight is None or not 0 < high - low < _NARROW:
            continue
        message = f"`{score.name}` lies within {low:g} and {high:g} of 0 to 100, and counts in whole points"
        yield Finding(message, score.value.span, _hundredfold(score.value, low, high), (), _steps_to(subject, score))


def _hundredfold(value: ir.Expr, low: float, high: float) -> Fix | None:
    if not (low == 0 and high == 1 and isinstance(value, ir.Call) and value.function in ("ratio", "betaCdf")):
        return None
    return Fix("write `100 * …`", (Edit(Span(value.span.start, value.span.start), "100 * "),))


@rule("PE3103", Severity.WARNING)
def cut_score(subject: Subject) -> Findings:
    """a score that is cut at 0 or 100

    What a score has below 0 counts as 0, and above 100 as 100: nodes beyond are all the same to it. Scale the score, or
    `normalize` it; where the cut is meant, say so with `clamp(…, 0, 100)`.

    How it is known: by the bounds of the value, as for PE3101; a node may be at either end or not.
    """
    for score in subject.own(subject.policy.scores):
        low, high, _ = _points(subject, score)
        within = low >= -_ROUNDING and high <= 100 + _ROUNDING
        if score.normalize is not ir.Normalize.NONE or within or low == high:
            continue
        message = f"`{score.name}` lies within {low:g} and {high:g}: it is cut to 0 to 100"
        fix = None
        if score.value.type.kind is not Kind.OPTIONAL:
            fix = wrapped(score.value.span, "clamp(", ", 0, 100)")
        yield Finding(message, score.value.span, fix, steps=_steps_to(subject, score))


def _points(subject: Subject, score: ir.Score) -> Interval:
    """The bounds of a score: it is 0 where its value is NaN or an empty optional, and where the value fails without
    `on error`."""
    parts = [subject.bounds.of(score.value)]
    if subject.bounds.may_fail(score.value):
        parts.append(_NOTHING if score.on_error is None else subject.bounds.of(score.on_error))
        if score.on_error is not None and subject.bounds.may_fail(score.on_error):
            parts.append(_NOTHING)
    if score.value.type.kind is Kind.OPTIONAL or any(part.nan for part in parts):
        parts.append(_NOTHING)
    return hull(parts)


_NOTHING = Interval(0.0, 0.0)
_ROUNDING = 1e-6
"""Points: a bound is rounded outwards, a score is cut where it is more than that beyond 0 or 100."""
_TIERS = 4
"""A score of so few values is taken to be meant as tiers."""


class _Weighed(NamedTuple):
    """A score, the least and the most that a point of it and all of it count, and when it runs."""

    score: ir.Score
    point: float
    most: float
    when: int | None


@rule("PE3104", Severity.WARNING)
def dominated_weight(subject: Subject) -> Findings:
    """a weight that cannot change a winner

    The most that the score can add is less than one point of another one: it decides only between nodes that the other
    one puts on the same point, which a finely graded score seldom does. Bring the weights nearer to each other, or
    leave the score out. (A score of a few steps, such as `x ? 100 : 0`, beside a finer one with a small weight is a way
    to rank by tiers, and not reported.)

    How it is known: the bounds of the value (PE3101), cut to 0 to 100, times the weight, are the most that the score
    adds; one point of the other one counts at least its smallest weight, and one of a `tier` more than all weights.
    """
    # Each score is compared with the heaviest fine-grained one that always runs with it.
    weighed = [_weighed(subject, score) for score in subject.own(subject.policy.scores)]
    fine = [one for one in weighed if _is_fine(one.score)]
    for one in weighed:
        together = [other for other in fine if other is not one and other.when in (None, one.when)]
        heaviest = max(together, key=lambda other: other.point, default=None)
        if heaviest is not None and one.most < heaviest.point:
            counts = "" if math.isinf(heaviest.point) else f"the {heaviest.point:g} of "
            most, least = f"at most {one.most:g}", f"{counts}one point of `{heaviest.score.name}`"
            steps = (
                *_steps_to(subject, one.score),
                Related(one.score.span, f"adds {most}"),
                Related(
                    heaviest.score.span,
                    f"counts {counts.removesuffix(' of ') or 'more than all weights'} for one point",
                ),
            )
            yield Finding(f"`{one.score.name}` adds {most}, less than {least}", one.score.span, steps=steps)


def _is_fine(score: ir.Score) -> bool:
    """Whether a score is finely graded; a tier that counts in ints is taken to be meant as so many tiers."""
    return _steps(score.value) > _TIERS and (score.weight is not None or score.value.type == DOUBLE)


def _weighed(subject: Subject, score: ir.Score) -> _Weighed:
    least, most = (math.inf, math.inf) if score.weight is None else _weight(subject, score.weight)
    when = subject.meaning(score.when) if score.when is not None else None
    return _Weighed(score, least, most * _span(subject, score), when)


def _weight(subject: Subject, weight: int | ir.ParamRef) -> tuple[int, int]:
    """The least and the largest weight."""
    if isinstance(weight, int):
        return weight, weight
    low, high, _ = subject.bounds.of(weight)
    known = subject.params.get(weight.name)
    default = known.default if known is not None and isinstance(known.default, int) else 1
    return (int(low), int(high)) if low > 0 and high < 2**53 else (default, default)


def _span(subject: Subject, score: ir.Score) -> float:
    low, high, _ = _points(subject, score)
    return 100.0 if score.normalize is not ir.Normalize.NONE else max(0.0, min(high, 100.0) - max(low, 0.0))


def _steps(value: ir.Expr) -> int:
    """How many values a score of conditionals has; many for any other."""
    if isinstance(value, ir.Const):
        return 1
    if isinstance(value, ir.Conditional):
        return _steps(value.then) + _steps(value.otherwise)
    return 1_000


_COARSE = {"cpu": 1_000, "memory": 1 << 30, "storage": 1 << 30}
"""A divisor below this leaves more than 0 to 100 on common nodes."""


@rule("PE3105", Severity.WARNING)
def saturated_clamp(subject: Subject) -> Findings:
    """a measured amount clamped to 0 to 100

    `clamp(node.free.cpu / 1m, 0, 100)` is 100 for every node with more than 100 millicores to spare: an amount in one
    unit leaves 0 to 100 at once. To rank by an amount, `normalize minmax`; to rank by a share, `100 * ratio(free,
    allocatable)`.
    """
    for score in subject.own(subject.policy.scores):
        match score.value:
            case ir.Call(function="clamp", args=(amount, *_)) if _is_amount(amount):
                message = "the amount is over 100 for nearly every node: rank it by `normalize minmax` instead"
                yield Finding(message, score.value.span)


def _is_amount(expr: ir.Expr) -> bool:
    match expr:
        case ir.Call(function="_/_", args=(amount, ir.Const(value=int() as divisor))) if amount.type.is_quantity:
            return amount.shape is Shape.NODE and divisor < _COARSE[amount.type.kind.value]
        case ir.Call(function="double", args=(amount,)):
            return amount.type.kind.value in ("memory", "storage") and amount.shape is Shape.NODE
        case _:
            return False


@rule("PE3106", Severity.WARNING)
def truncated_division(subject: Subject) -> Findings:
    """an int division that loses the fraction before it is scaled

    Between ints `/` cuts the fraction off: `node.podCount / 110 * 100` is 0 until the node is full. Write `100 *`
    first, or use doubles: `100 * ratio(double(node.podCount), 110.0)`.
    """
    for call in subject.parts_of(ir.Call):
        match call.function, call.args:
            case "_*_", args if call.type == INT:
                yield from (_cut_off(arg) for arg in args if _divides(arg))
            case "double", (arg,) if _divides(arg):
                yield _cut_off(arg)
            case _:
                pass


def _divides(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function == "_/_" and expr.type == INT


def _cut_off(division: ir.Expr) -> Finding:
    return Finding("dividing ints cuts the fraction off before it is used: divide doubles, or last", division.span)
