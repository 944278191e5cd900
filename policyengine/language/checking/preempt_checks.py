"""`preempt`: which running pods may make room, which go first, how many at most."""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import MISSING_FIELD, WRONG_AMOUNT, WRONG_TYPE
from policyengine.language.checking.context import Context
from policyengine.language.checking.policy_scope import PolicyScope, check_order_key, check_when
from policyengine.language.checking.setting_checks import only
from policyengine.language.ir.ir_walk import is_error
from policyengine.language.types import BOOL, INT

_ABOUT_VICTIMS = frozenset({"victim", "pod", "podGroup", "now", "policy"})


def check_preempt(scope: PolicyScope, members: Sequence[syntax.Member]) -> ir.Preempt | None:
    """The policy's `preempt`, None without one, or (reported) for a wrong one."""
    member = only(scope.report, members, syntax.Preempt, "preempt")
    if member is None:
        return None
    if member.victims is None and not member.order and member.max_victims is None:
        message = "the `preempt` has none of `victims`, `order by` and `maxVictims`, so it changes nothing"
        scope.report.error(MISSING_FIELD, message, member.keyword_span)
        return None
    when, good = check_when(scope, member.when, Context(rule="preempt"))
    context = scope.known(Context(rule="preempt", victim=True), when)
    victims = _victims(scope, member, context)
    keys = [
        check_order_key(scope, key, context, lambda value: _reads_victims(scope, value, "a key of `preempt`"))
        for key in member.order
    ]
    order = tuple(key for key in keys if key is not None)
    most = _max_victims(scope, member)
    missing = (member.victims is not None and victims is None) or (member.max_victims is not None and most is None)
    if not good or missing or len(order) < len(keys):
        return None
    return ir.Preempt(when=when, victims=victims, order=order, max_victims=most, span=member.span)


def _victims(scope: PolicyScope, member: syntax.Preempt, context: Context) -> ir.Expr | None:
    if member.victims is None:
        return None
    victims = scope.typed(member.victims, context, BOOL, "`victims`")
    return victims if victims is not None and _reads_victims(scope, victims, "`victims`") else None


def _reads_victims(scope: PolicyScope, expr: ir.Expr, what: str) -> bool:
    words = "victim, pod, podGroup, now and params"
    return scope.reads_only(expr, what, lambda path: path[0] in _ABOUT_VICTIMS, words)


def _max_victims(scope: PolicyScope, member: syntax.Preempt) -> ir.Expr | None:
    """An int of at least 1: a literal, or a param."""
    written = member.max_victims
    checked = scope.checker.check(written, Context(), INT) if written is not None else None
    if written is None or checked is None or is_error(checked):
        return None
    ends = _ends(scope, checked)
    if not ends:
        scope.report.error(WRONG_TYPE, "`maxVictims` is an int literal or an int param", written.span)
        return None
    if min(ends) < 1:
        message = (
            f"`maxVictims` is at least 1, this may be {min(ends)}; to keep all pods write `disable DefaultPreemption`"
        )
        scope.report.error(WRONG_AMOUNT, message, written.span)
        return None
    return checked


def _ends(scope: PolicyScope, checked: ir.Expr) -> list[int]:
    """The values that an int literal or param may have, as far as they are known."""
    if checked.type != INT:
        return []
    if isinstance(checked, ir.Const) and isinstance(checked.value, int):
        return [checked.value]
    if isinstance(checked, ir.ParamRef):
        return scope.ends_of(checked)
    return []
