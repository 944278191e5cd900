"""Filters: what they refuse, and what they say about it."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Related, Severity, Subject, rule
from policyengine.language.syntax import Span
from policyengine.language.types import Shape


@rule("PE3001", Severity.WARNING)
def impossible_filter(subject: Subject) -> Findings:
    """a filter that no node can pass

    The conditions of the filter contradict each other, or its `when`, or what a field can be: whatever the cluster
    looks like, every pod that the filter is asked about is refused on every node. Conditions are compared by the values
    they allow: numbers by intervals, strings by sets.

    Instead of `require node.zone == "a" && node.zone == "b"` write `||`; instead of `require node.podCount < 0`, a
    bound that a node can meet.
    """
    # The first require that leaves nothing of what `when` and those before it let through.
    for filter_ in subject.own(subject.policy.filters):
        given = [filter_.when] if filter_.when is not None else []
        if given and subject.truth.impossible(*given):
            continue  # a `when` that is never true: PE3004
        for number, require in enumerate(filter_.requires):
            if require.on_error is None and subject.truth.impossible(*given, require.condition):
                before = filter_.requires[number - 1].span if number else None
                alone = number == 0 or subject.truth.impossible(*given[:1], require.condition)
                message = "no node can pass: " + (
                    "this is never true" if alone else "this cannot hold together with what is required before it"
                )
                related = (Related(before, "required here"),) if before is not None and not alone else ()
                yield Finding(message, require.condition.span, related=related)
                break
            given.append(require.condition)


@rule("PE3002", Severity.WARNING)
def vacuous_require(subject: Subject) -> Findings:
    """a require that is always true

    Whatever the node and the pod are, the condition holds: the `require` refuses nothing, so the filter does not do
    what it is there for. Often a comparison looks in the wrong direction, or `||` stands where `&&` was meant: `zone !=
    "a" || zone != "b"` is true of every zone.
    """
    for filter_ in subject.own(subject.policy.filters):
        given = [filter_.when] if filter_.when is not None else []
        if given and subject.truth.impossible(*given):
            continue
        for require in filter_.requires:
            condition = require.condition
            if not subject.truth.may_fail(condition) and subject.truth.implied(condition, *given):
                by_when = not subject.truth.implied(condition)
                why = "wherever `when` is, so it refuses nothing" if by_when else "so it refuses nothing"
                yield Finding(f"this is always true{' ' if by_when else ', '}{why}", condition.span)


_MOST = 40
"""Requires of one filter that are compared."""


@rule("PE3003", Severity.WARNING)
def implied_require(subject: Subject) -> Findings:
    """a require that another one implies

    A condition before it in the same filter lets nothing through that this one would refuse. One of the two is not what
    was meant, or can go: `require node.free.cpu >= 2` behind `require node.free.cpu >= 4` never refuses anything.
    """
    for filter_ in subject.own(subject.policy.filters):
        when = [filter_.when] if filter_.when is not None else []
        requires = filter_.requires[:_MOST]
        for number, require in enumerate(requires):
            condition, before = require.condition, [one.condition for one in requires[:number]]
            if not before or subject.truth.may_fail(condition):
                continue
            if subject.truth.implied(condition, *when) or subject.truth.impossible(*when, *before):
                continue  # PE3002, PE3001
            if subject.truth.implied(condition, *when, *before):
                alone = (one for one in requires[:number] if subject.truth.implied(condition, *when, one.condition))
                by = next(alone, requires[number - 1])
                related = (Related(by.condition.span, "this refuses more"),)
                message = "what is required before implies this, so it refuses nothing"
                yield Finding(message, condition.span, None, related)


@rule("PE3005", Severity.WARNING)
def duplicate_require(subject: Subject) -> Findings:
    """the same condition required twice

    Two filters ask the same of the same pods. The second never refuses anything that the first let through, and which
    of the two names a refusal depends on their order.
    """
    first: dict[tuple[int | None, int], tuple[str, Span]] = {}
    for filter_ in subject.own(subject.policy.filters):
        when = subject.meaning(filter_.when) if filter_.when is not None else None
        for require in filter_.requires:
            condition = subject.meaning(require.condition)
            known = first.get((None, condition)) or first.get((when, condition))
            if known is not None and known[0] != filter_.name:
                related = (Related(known[1], "required here already"),)
                yield Finding(f"`{known[0]}` requires the same", require.condition.span, None, related)
            first.setdefault((when, condition), (filter_.name, require.condition.span))


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


_SAFE = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "!_", "orValue", "or", "hasValue", "startsWith", "endsWith"}
    | {"contains", "matches", "size", "ratio", "clamp", "min", "max", "toInt", "toDouble", "lowerAscii", "upperAscii"}
)
"""Functions that have a value whatever they are given. Arithmetic is not among them: it may overflow."""


@rule("PE3404", Severity.INFO)
def useless_on_error(subject: Subject) -> Findings:
    """an `on error` for what cannot fail

    The expression has a value for every pod and node: nothing in it divides by what may be zero, converts, or asks for
    a domain. `on error` is never used. `--fix` removes it.
    """
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            if require.on_error is not None and _has_a_value(subject, require.condition):
                yield _never_used(subject, require.on_error)
    for score in subject.own(subject.policy.scores):
        if score.on_error is not None and _has_a_value(subject, score.value):
            yield _never_used(subject, score.on_error)


def _has_a_value(subject: Subject, expr: ir.Expr) -> bool:
    return all(
        isinstance(part, ir.Const | ir.Field | ir.LetRef | ir.ParamRef | ir.Logic | ir.Conditional | ir.ListExpr)
        or (isinstance(part, ir.Index | ir.Select) and part.optional)
        or (isinstance(part, ir.Call) and part.function in _SAFE)
        for part in walk(expr, subject.let_value)
    )


def _never_used(subject: Subject, on_error: ir.Expr) -> Finding:
    text = subject.source.text
    start = text.rfind("on", 0, on_error.span.start)
    fix = None
    if text[start : on_error.span.start].split() == ["on", "error"]:
        start = len(text[:start].rstrip(" \t"))
        fix = Fix("remove `on error`", (Edit(Span(start, on_error.span.end), ""),), safe=True)
    return Finding("nothing here can fail, so this is never used", on_error.span, fix)


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
