"""What conditions are redundant, or have one outcome."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.ir.ir_walk import children
from policyengine.language.lint.rule import (
    Edit,
    Finding,
    Findings,
    Fix,
    Place,
    Related,
    Severity,
    Span,
    Subject,
    instead,
    only,
    rule,
)
from policyengine.language.lint.truth import not_false
from policyengine.language.types import BOOL, DOUBLE


@rule("PE3004", Severity.WARNING)
def constant_when(subject: Subject) -> Findings:
    """a `when` that is always true or never

    A rule whose `when` is never true does not run; one whose `when` is always true does not need it. Mostly a
    comparison contradicts another one: `when pod.priority > 100 && pod.priority < 10`.

    How it is known: as for PE3001 and PE3002. A `when` that may fail is not reported, unless what fails stands beside
    something false: a filter, gang, quota or permit runs where its `when` fails.
    """
    for place in subject.places:
        if place.what != "when":
            continue
        outcome = subject.truth.outcome(place.expr)
        if outcome is not None:
            how = "always true: leave it out" if outcome else "never true, so the rule never runs"
            yield Finding(f"`when` is {how}", place.expr.span, steps=subject.truth.proof())


_WHOLE = frozenset({"when", "condition"})
"""What other rules look at: `when` PE3004, `require` PE3001 and PE3002."""


@rule("PE3006", Severity.WARNING)
def constant_condition(subject: Subject) -> Findings:
    """a part of a condition that is always true or never

    A comparison inside a condition has only one outcome, so what depends on it does too: a branch of `?:` is never
    taken, an operand of `&&` or `||` changes nothing. `node.podCount >= 0` is true of every node.

    How it is known: as for PE3001 and PE3002, from this part alone. Nothing is reported that may fail to have a value.
    """
    for place in subject.places:
        yield from _inside(subject, place)


def _inside(subject: Subject, place: Place) -> Findings:
    holds = subject.holds
    pending = [place.expr]
    while pending:
        part = pending.pop()
        parts = children(part)
        if not parts:
            continue
        whole = part is place.expr and place.what in _WHOLE
        compares = part.type == BOOL and isinstance(part, ir.Call | ir.Logic) and not whole
        outcome = subject.truth.outcome(part) if compares else None
        if outcome is None:
            pending += [one for one in parts if holds(one.span)]
        else:
            shown = "always true" if outcome else "never true"
            yield Finding(f"this is {shown}, so it decides nothing", part.span, steps=subject.truth.proof())


_MOST = 12
"""Operands of one expression that are compared."""


@rule("PE3007", Severity.WARNING)
def redundant_operand(subject: Subject) -> Findings:
    """an operand of `&&` or `||` that changes nothing

    What stands beside it decides already: in `p > 5 && p > 3` the second comparison is true wherever the first is, in
    `p > 5 || p > 3` the first adds nothing to the second.

    How it is known: the one operand is taken to be true, or to fail, and the other to be false, or to fail; nothing is
    left of one of their terms (PE3001). So leaving it out changes neither the result nor where there is none.
    """
    for logic in subject.parts_of(ir.Logic):
        if len(logic.operands) <= _MOST:
            yield from _pairs(subject, logic)


def _pairs(subject: Subject, logic: ir.Logic) -> Findings:
    truth = subject.truth
    operands = sorted(logic.operands, key=lambda one: one.span.start)
    settled = {id(one) for one in operands if isinstance(one, ir.Const) or truth.outcome(one) is not None}
    said: set[int] = set()
    for one in operands:
        for other in operands:
            if one is other or {id(one), id(other)} & (said | settled):
                continue
            # In `a && b` the implied one is idle, in `a || b` the one that implies.
            implied, by = (one, other) if logic.op == "&&" else (other, one)
            later, idle = truth.implied(by, not_false(implied)), truth.implied(implied, not_false(by))
            if idle and not (later and one.span.start < other.span.start):
                said.add(id(one))
                message = "this is true wherever the rest holds, so it adds nothing"
                if logic.op == "||":
                    message = "the other operand is true wherever this is true, so this adds nothing"
                yield Finding(message, one.span, None, (Related(other.span, "because of this"),), truth.proof())


_OPERATORS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_-_", "_/_", "ratio", "min", "max"})


@rule("PE3008", Severity.WARNING)
def self_comparison(subject: Subject) -> Findings:
    """a value compared, or combined, with itself

    `x == x`, `x - x`, `ratio(x, x)` and `a && a` have a result that is known beforehand (a ratio is 1, and 0 where x
    is). One side was meant to be something else, such as `node` in the place of `pod`. A double that may be NaN is not
    reported: `x == x` asks whether it is.

    By definition: both sides are the same expression, their lets and functions put in, and nothing in it is drawn.
    """
    meaning = subject.meaning
    for call in subject.parts_of(ir.Call):
        if call.function in _OPERATORS and len(call.args) == 2:
            left, right = call.args
            if not isinstance(left, ir.Const) and meaning(left) == meaning(right) and not _unlike_itself(subject, call):
                yield _finding("operands", call)
    for logic in subject.parts_of(ir.Logic):
        if len(set(map(meaning, logic.operands))) < len(logic.operands):
            yield _finding("operands", logic)
    for choice in subject.parts_of(ir.Conditional):
        if meaning(choice.then) == meaning(choice.otherwise):
            yield _finding("branches", choice)


def _finding(both: str, expr: ir.Expr) -> Finding:
    return Finding(f"both {both} are the same, so the result is known beforehand", expr.span)


def _unlike_itself(subject: Subject, call: ir.Call) -> bool:
    """Whether a value is drawn, or may be NaN or make NaN of itself: an infinity less itself, 0 over itself."""
    value = call.args[0]
    if isinstance(value, ir.Call) and value.function == "random":
        return True
    bounds = subject.bounds.of(value)
    if call.function in ("_-_", "ratio", "_/_") and value.type == DOUBLE and bounds.may_be_infinite:
        return True
    return value.type == DOUBLE and (bounds.nan or (call.function == "_/_" and bounds.may_be_zero))


_OPPOSITE = {"==": "!=", "!=": "=="}


@rule("PE3009", Severity.INFO)
def double_negation(subject: Subject) -> Findings:
    """a negation that can be left out

    `!!x` is `x`; `!(a == b)` is `a != b`, and reads as what it means. `--fix` writes it so.
    """
    # The opposite of `<` is not `>=`: both are false of NaN.
    for node in subject.nodes_of(syntax.Unary):
        if node.op != "!":
            continue
        match node.operand:
            case syntax.Unary(op="!", operand=inner):
                fix = instead(subject.text(inner.span), *only(node.span, inner.span))
                yield Finding("two negations cancel each other", node.span, fix)
            case syntax.Binary(op="==" | "!=" as op, left=left, right=right):
                opposite = _OPPOSITE[op]
                text = f"({subject.text(left.span)} {opposite} {subject.text(right.span)})"
                turned = Edit(Span(left.span.end, right.span.start), f" {opposite} ")
                edits = (*only(node.span, node.operand.span), turned)
                yield Finding(f"a negated `{op}` is `{opposite}`", node.span, instead(text, *edits))
            case _:
                pass


_TIGHT = (syntax.Name, syntax.Select, syntax.Index, syntax.Call, syntax.Literal)


@rule("PE3010", Severity.INFO)
def bool_literal(subject: Subject) -> Findings:
    """a condition compared with `true` or `false`

    A bool is a condition already: `x == true` is `x`, `x == false` is `!x`, and `c ? true : false` is `c`.
    """
    for node in subject.nodes_of(syntax.Binary):
        if node.op in ("==", "!="):
            for value, literal in ((node.left, node.right), (node.right, node.left)):
                if (truth := _bool(literal)) is not None and _bool(value) is None:
                    fix = _condition(subject, node, value, truth == (node.op == "=="))
                    yield Finding(f"comparing a condition with `{str(truth).lower()}` adds nothing", node.span, fix)
    for choice in subject.nodes_of(syntax.Conditional):
        then, otherwise = _bool(choice.then), _bool(choice.otherwise)
        if then is not None and otherwise is not None and then is not otherwise:
            fix = _condition(subject, choice, choice.condition, then)
            yield Finding("the condition is the result already", choice.span, fix)


def _bool(node: syntax.Expr) -> bool | None:
    return node.value if isinstance(node, syntax.Literal) and isinstance(node.value, bool) else None


def _condition(subject: Subject, whole: syntax.Expr, value: syntax.Expr, holds: bool) -> Fix:
    """The fix that leaves a condition of the whole, or its negation."""
    before, behind = ("", "") if isinstance(value, _TIGHT) else ("(", ")")
    before = before if holds else f"!{before}"
    return instead(f"{before}{subject.text(value.span)}{behind}", *only(whole.span, value.span, before, behind))
