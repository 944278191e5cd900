"""a weight that cannot change a winner

The most that the score can add is less than one point of another one: it decides only between nodes that the other
one puts on the same point, which a finely graded score seldom does. Bring the weights nearer to each other, or leave
the score out. (A score of a few steps, such as `x ? 100 : 0`, beside a finer one with a small weight is a way to rank
by tiers, and not reported.)
"""

from __future__ import annotations

from typing import NamedTuple

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_TIERS = 4
"""A score of so few values is taken to be meant as tiers."""


class _Weighed(NamedTuple):
    """A score, the least and the most that a point of it and all of it count, and when it runs."""

    score: ir.Score
    point: int
    most: float
    when: int | None


@rule("PE3104", Severity.WARNING, __doc__)
def dominated_weight(subject: Subject) -> Findings:
    """Each score beside the heaviest fine one that always runs with it."""
    weighed = [_weighed(subject, score) for score in subject.own(subject.policy.scores)]
    fine = [one for one in weighed if _steps(one.score.value) > _TIERS]
    for one in weighed:
        together = [other for other in fine if other is not one and other.when in (None, one.when)]
        heaviest = max(together, key=lambda other: other.point, default=None)
        if heaviest is not None and one.most < heaviest.point:
            most, least = f"at most {one.most:g}", f"the {heaviest.point} of one point of `{heaviest.score.name}`"
            yield Finding(f"`{one.score.name}` adds {most}, less than {least}", one.score.span)


def _weighed(subject: Subject, score: ir.Score) -> _Weighed:
    least, most = _weight(subject, score)
    when = subject.meanings.of(score.when) if score.when is not None else None
    return _Weighed(score, least, most * _span(subject, score), when)


def _weight(subject: Subject, score: ir.Score) -> tuple[int, int]:
    """The least and the largest weight."""
    if isinstance(score.weight, int):
        return score.weight, score.weight
    low, high = subject.bounds.of(score.weight)
    known = subject.params.get(score.weight.name)
    default = known.default if known is not None and isinstance(known.default, int) else 1
    return (int(low), int(high)) if low > 0 and high < 2**53 else (default, default)


def _span(subject: Subject, score: ir.Score) -> float:
    low, high = subject.bounds.of(score.value)
    return 100.0 if score.normalize is not ir.Normalize.NONE else max(0.0, min(high, 100.0) - max(low, 0.0))


def _steps(value: ir.Expr) -> int:
    """How many values a score of conditionals has; many for any other."""
    if isinstance(value, ir.Const):
        return 1
    if isinstance(value, ir.Conditional):
        return _steps(value.then) + _steps(value.otherwise)
    return 1_000
