"""The rewrite phase: the same meaning, less work.

Constants are folded. The parts of `&&` and `||` are put in order of cost, what reads no node first: errors are
absorbed in either order, so no order shows. What only needs the pod is visible by its reach and shape and is
hoisted by whoever evaluates.
"""

from __future__ import annotations

from operator import is_

from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.checking.context import extent
from policyengine.language.evaluator import evaluated
from policyengine.language.functions import FUNCTIONS
from policyengine.language.ir.ir_walk import children, rebuilt
from policyengine.language.schema_objects import CLUSTER_POD, NODE
from policyengine.language.types import Kind, Shape
from policyengine.language.values import EvaluationError

_FOLDED = frozenset(
    {
        Kind.BOOL,
        Kind.INT,
        Kind.DOUBLE,
        Kind.STRING,
        Kind.DURATION,
        Kind.TIMESTAMP,
        Kind.CPU,
        Kind.MEMORY,
        Kind.STORAGE,
    }
)
_LONGEST_FOLDED = 10_000
"""Longer strings are made when they are needed: many of them would fill the memory."""
_TEXT_COST = 8
_FREE = frozenset[type[ir.Expr]]((ir.Const, ir.ParamRef, ir.LetRef, ir.Local))
_OF_SHAPE = (1, 10, 100)
"""By the shape: one value, a column of nodes, one of pods. There are about ten pods a node."""
_PER_ELEMENT = 8
"""How many elements a comprehension is taken to run over."""


def rewrite(policy: ir.Policy) -> ir.Policy:
    """The policy with every expression rewritten."""
    return replace(
        policy,
        lets=tuple(replace(let, value=simplified(let.value)) for let in policy.lets),
        queue=replace(
            policy.queue,
            order=tuple(map(_key, policy.queue.order)),
            fair_by=_maybe(policy.queue.fair_by),
        ),
        filters=tuple(map(_filter, policy.filters)),
        scores=tuple(map(_score, policy.scores)),
        gangs=tuple(map(_gang, policy.gangs)),
        quotas=tuple(map(_quota, policy.quotas)),
        permits=tuple(map(_permit, policy.permits)),
        preempt=_preempt(policy.preempt) if policy.preempt is not None else None,
        logs=tuple(replace(log, when=_maybe(log.when), message=_text(log.message)) for log in policy.logs),
        annotations=tuple(replace(one, value=_text(one.value)) for one in policy.annotations),
    )


def _key(key: ir.OrderKey) -> ir.OrderKey:
    return replace(key, value=simplified(key.value))


def _filter(rule: ir.Filter) -> ir.Filter:
    requires = (
        replace(
            require,
            condition=simplified(require.condition),
            otherwise=_text(require.otherwise) if require.otherwise is not None else None,
            on_error=_maybe(require.on_error),
        )
        for require in rule.requires
    )
    return replace(rule, when=_maybe(rule.when), requires=tuple(requires))


def _score(rule: ir.Score) -> ir.Score:
    value, on_error = simplified(rule.value), _maybe(rule.on_error)
    return replace(rule, when=_maybe(rule.when), value=value, on_error=on_error)


def _gang(rule: ir.Gang) -> ir.Gang:
    return replace(
        rule,
        when=_maybe(rule.when),
        key=simplified(rule.key),
        min=simplified(rule.min),
        timeout=simplified(rule.timeout),
        waits=_maybe(rule.waits),
    )


def _quota(rule: ir.Quota) -> ir.Quota:
    return replace(rule, when=simplified(rule.when), borrow=_maybe(rule.borrow))


def _permit(rule: ir.Permit) -> ir.Permit:
    return replace(
        rule,
        when=_maybe(rule.when),
        delay=_maybe(rule.delay),
        until=_maybe(rule.until),
        timeout=_maybe(rule.timeout),
    )


def _preempt(rule: ir.Preempt) -> ir.Preempt:
    return replace(
        rule,
        when=_maybe(rule.when),
        victims=_maybe(rule.victims),
        order=tuple(map(_key, rule.order)),
        max_victims=_maybe(rule.max_victims),
    )


def _maybe(expr: ir.Expr | None) -> ir.Expr | None:
    return simplified(expr) if expr is not None else None


def _text(template: ir.Template) -> ir.Template:
    parts = (part if isinstance(part, str) else simplified(part) for part in template.parts)
    return replace(template, parts=tuple(parts))


def simplified(expr: ir.Expr) -> ir.Expr:
    """The expression with constants folded and cheap conjuncts first; of the same type and meaning."""
    parts = children(expr)
    if not parts:
        return expr
    simpler = list(map(simplified, parts))
    if not all(map(is_, simpler, parts)):
        expr = rebuilt(expr, simpler)
    match expr:
        case ir.Logic():
            return _logic(expr)
        case ir.Conditional(condition=ir.Const(value=bool() as chosen)):
            return expr.then if chosen else expr.otherwise
        case ir.Call():
            return _folded(expr)
        case _:
            return expr


def _folded(expr: ir.Call) -> ir.Expr:
    row = FUNCTIONS.get(expr.function)
    if row is None or not row.folds or expr.type.kind not in _FOLDED:
        return expr
    for arg in expr.args:
        if arg.__class__ is not ir.Const:
            return expr
    try:
        value = evaluated(expr)
    except EvaluationError:
        return expr
    if isinstance(value, str) and len(value) > _LONGEST_FOLDED:
        return expr
    return ir.Const(type=expr.type, span=expr.span, value=value)


def _logic(expr: ir.Logic) -> ir.Expr:
    """`false && e` is false even where e fails; `true && e` is e."""
    deciding = expr.op == "||"
    left: list[ir.Expr] = []
    for part in expr.operands:
        if isinstance(part, ir.Const):
            if part.value is deciding:
                return replace(part, span=expr.span)
            continue
        left.append(part)
    if not left:
        return ir.Const(type=expr.type, span=expr.span, value=not deciding)
    if len(left) == 1:
        return left[0]
    ordered = sorted(left, key=lambda part: (part.shape is not Shape.SCALAR, cost(part)))
    if tuple(ordered) == expr.operands:
        return expr
    return replace(expr, operands=tuple(ordered), **extent(*ordered))


def cost(expr: ir.Expr) -> int:
    """A rough price: what a column of nodes costs counts ten times what one value does, one of pods a hundred times."""
    total, pending = 0, [expr]
    while pending:
        part = pending.pop()
        if part.__class__ in _FREE:
            continue
        if isinstance(part, ir.Comprehension):
            total += _cost_of_all(part)
            continue
        own = _call_cost(part) if isinstance(part, ir.Call) else 1
        total += own * _OF_SHAPE[part.shape]
        pending += children(part)
    return total


def _cost_of_all(expr: ir.Comprehension) -> int:
    source, *asked = map(cost, children(expr))
    # What is asked of all pods or nodes is a column of its own, which its shape makes dear enough.
    return source + sum(asked) * (1 if expr.source.type.args[0] in (NODE, CLUSTER_POD) else _PER_ELEMENT)


def _call_cost(call: ir.Call) -> int:
    row = FUNCTIONS.get(call.function)
    if row is not None and row.cost.rank is not None:
        return row.cost.rank
    return _TEXT_COST if any(arg.type.kind is Kind.STRING for arg in call.args) else 1
