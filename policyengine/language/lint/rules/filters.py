"""Filters: what they refuse, and what they say about it."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Related, Severity, Subject, rule
from policyengine.language.lint.truth import Literal, not_false, true
from policyengine.language.syntax import Span
from policyengine.language.types import Shape


@rule("PE3001", Severity.WARNING)
def impossible_filter(subject: Subject) -> Findings:
    """a filter that no node can pass

    The conditions of the filter contradict each other, or its `when`, or what a field can be: whatever the cluster
    looks like, every pod that the filter is asked about is refused on every node.

    How it is known: of `a && b` both hold, of `a || b` one does. Each comparison narrows what its term may be, a number
    to an interval and a string to a set, beginning with what Kubernetes lets the field be. In `node.podCount > 5 &&
    node.podCount < 3` the first leaves 6 and more and the second nothing of that. Where nothing is left on every way
    through the condition, it is never true. What is rounded is bounded outwards, a double may be NaN, and a `when` that
    fails lets the filter run.

    Instead of `require node.zone == "a" && node.zone == "b"` write `||`; instead of `require node.podCount < 0`, a
    bound that a node can meet.
    """
    # The first require that leaves nothing of what `when` and those before it let through.
    for filter_ in subject.own(subject.policy.filters):
        when = _when(filter_)
        if when and subject.truth.impossible(*when):
            continue  # a `when` that is never true: PE3004
        passed: list[Literal] = []
        for number, require in enumerate(filter_.requires):
            if not _may_pass(require) and subject.truth.impossible(*when, *passed, true(require.condition)):
                before = filter_.requires[number - 1].span if number else None
                alone = number == 0 or subject.truth.impossible(*when, true(require.condition))
                message = "no node can pass: " + (
                    "this is never true" if alone else "this cannot hold together with what is required before it"
                )
                related = (Related(before, "required here"),) if before is not None and not alone else ()
                yield Finding(message, require.condition.span, None, related, subject.truth.proof())
                break
            passed.append(_passed(require))


def _when(filter_: ir.Filter) -> list[Literal]:
    """What is known where the filter runs: a `when` that fails counts as true."""
    return [not_false(filter_.when)] if filter_.when is not None else []


def _may_pass(require: ir.Require) -> bool:
    """Whether a node may pass where the condition fails to have a value."""
    on_error = require.on_error
    return on_error is not None and not (isinstance(on_error, ir.Const) and on_error.value is False)


def _passed(require: ir.Require) -> Literal:
    """What is known of the nodes that pass."""
    return not_false(require.condition) if _may_pass(require) else true(require.condition)


@rule("PE3002", Severity.WARNING)
def vacuous_require(subject: Subject) -> Findings:
    """a require that is always true

    Whatever the node and the pod are, the condition holds: the `require` refuses nothing, so the filter does not do
    what it is there for. Often a comparison looks in the wrong direction, or `||` stands where `&&` was meant: `zone !=
    "a" || zone != "b"` is true of every zone.

    How it is known: that the condition is false, or fails to have a value, is taken for granted, and nothing is left of
    one of its terms (PE3001). In `zone != "a" || zone != "b"` both would be false, and the zone both `a` and `b`. A
    condition that may fail, by a division by zero or an overflow, is not reported.
    """
    for filter_ in subject.own(subject.policy.filters):
        when = _when(filter_)
        if when and subject.truth.impossible(*when):
            continue
        for require in filter_.requires:
            condition = require.condition
            if subject.truth.implied(condition, *when):
                by_when = not subject.truth.implied(condition)
                why = "wherever `when` is, so it refuses nothing" if by_when else "so it refuses nothing"
                message = f"this is always true{' ' if by_when else ', '}{why}"
                yield Finding(message, condition.span, steps=subject.truth.proof())


_MOST = 40
"""Requires of one filter that are compared."""


@rule("PE3003", Severity.WARNING)
def implied_require(subject: Subject) -> Findings:
    """a require that another one implies

    A condition before it in the same filter lets nothing through that this one would refuse. One of the two is not what
    was meant, or can go: `require node.free.cpu >= 2` behind `require node.free.cpu >= 4` never refuses anything.

    How it is known: as for PE3002, with what is required before it taken to be true.
    """
    for filter_ in subject.own(subject.policy.filters):
        when = _when(filter_)
        requires = filter_.requires[:_MOST]
        for number, require in enumerate(requires):
            condition, before = require.condition, [_passed(one) for one in requires[:number]]
            if not before:
                continue
            if subject.truth.implied(condition, *when) or subject.truth.impossible(*when, *before):
                continue  # PE3002, PE3001
            if subject.truth.implied(condition, *when, *before):
                alone = (one for one in requires[:number] if subject.truth.implied(condition, *when, _passed(one)))
                by = next(alone, requires[number - 1])
                related = (Related(by.condition.span, "this refuses more"),)
                message = "what is required before implies this, so it refuses nothing"
                yield Finding(message, condition.span, None, related, subject.truth.proof())


@rule("PE3005", Severity.WARNING)
def duplicate_require(subject: Subject) -> Findings:
    """the same condition required twice

    Two filters ask the same of the same pods. The second never refuses anything that the first let through, and which
    of the two names a refusal depends on their order. A first one with `on error` lets through what the second may
    refuse: it is the same only where `on error` is too.

    By definition: the two conditions are the same expression, their lets and functions put in.
    """
    first: dict[tuple[int | None, int, int | None], tuple[str, Span]] = {}
    for filter_ in subject.own(subject.policy.filters):
        when = subject.meaning(filter_.when) if filter_.when is not None else None
        for require in filter_.requires:
            condition = subject.meaning(require.condition)
            on_error = subject.meaning(require.on_error) if require.on_error is not None else None
            keys = [(rule_when, condition, on) for rule_when in (None, when) for on in (None, on_error)]
            known = next((first[key] for key in keys if key in first), None)
            if known is not None and known[0] != filter_.name:
                related = (Related(known[1], "required here already"),)
                yield Finding(f"`{known[0]}` requires the same", require.condition.span, None, related)
            lets_through = on_error if _may_pass(require) else None
            first.setdefault((when, condition, lets_through), (filter_.name, require.condition.span))


@rule("PE3403", Severity.WARNING)
def hidden_error(subject: Subject) -> Findings:
    """an error that lets a node through

    `on error true` in a filter admits the node exactly where the condition could not be computed: on a division by
    zero, a missing domain, an overflow. A filter is there to refuse; without `on error` it does, and says why.
    """
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            if isinstance(require.on_error, ir.Const) and require.on_error.value is True:
                message = "where the condition fails to have a value, the node is let through"
                yield Finding(message, require.on_error.span)


@rule("PE3404", Severity.INFO)
def useless_on_error(subject: Subject) -> Findings:
    """an `on error` for what cannot fail

    The expression has a value for every pod and node: nothing in it divides by what may be zero, converts, or asks for
    a domain. `on error` is never used. `--fix` removes it.

    How it is known: every part is a function that has a value whatever it is given, or a number that is computed, and
    the bounds of that stay within 64 bits and its divisor's do not hold 0.
    """
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            if require.on_error is not None and not subject.bounds.may_fail(require.condition):
                steps = subject.bounds.why_total(require.condition)
                yield _never_used((require.otherwise or require.condition).span.end, require.on_error, steps)
    for score in subject.own(subject.policy.scores):
        if score.on_error is not None and not subject.bounds.may_fail(score.value):
            yield _never_used(score.value.span.end, score.on_error, subject.bounds.why_total(score.value))


def _never_used(behind: int, on_error: ir.Expr, steps: tuple[Related, ...]) -> Finding:
    fix = Fix("remove `on error`", (Edit(Span(behind, on_error.span.end), ""),), safe=True)
    return Finding("nothing here can fail, so this is never used", on_error.span, fix, steps=steps)


@rule("PE3506", Severity.INFO)
def missing_else(subject: Subject) -> Findings:
    """a require that does not say why it refuses

    The text after `else` stands in the pod's event and condition, and in `explain`. Without one they quote the
    condition, which its author understands, and the owner of the pod does not.
    """
    for filter_ in subject.written_as(syntax.Filter):
        for require in filter_.requires:
            text = require.otherwise
            if text is None or not any(not isinstance(part, str) or part.strip() for part in text.parts):
                yield Finding('say why in a word to the pod\'s owner: `else "…"`', require.condition.span)


_ORDERINGS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


@rule("PE3507", Severity.INFO)
def mute_else(subject: Subject) -> Findings:
    """a reason that quotes no value

    The condition compares amounts, and the text says only that they do not fit. How much was asked for and how much
    there is tells the owner of the pod what to change: `else "needs {headroom} spare memory, has {node.free.memory}"`.
    """
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            text = require.otherwise
            if text is None or not text.parts or not all(isinstance(part, str) for part in text.parts):
                continue
            if any(_compares(part) for part in walk(require.condition, subject.let_value)):
                yield Finding("the text quotes none of the values that are compared", text.span)


def _compares(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function in _ORDERINGS and expr.shape is Shape.NODE
