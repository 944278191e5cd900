"""`permit`: how long a reserved pod is held, or for what."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import MISSING_FIELD, WRONG_TIME
from policyengine.language.checking.context import Context
from policyengine.language.checking.policy_scope import PolicyScope, check_when
from policyengine.language.types import BOOL, DURATION


def check_permit(scope: PolicyScope, member: syntax.Permit) -> ir.Permit | None:
    """A permit, None (reported) where anything in it is wrong. All of it may read the node that was chosen."""
    context = Context(rule=member.name.text)
    when, good = check_when(scope, member.when, context, node=True)
    context = scope.known(context, when)
    delay = _duration(scope, member.delay, "delay", context)
    timeout = _duration(scope, member.timeout, "timeout", context)
    until = scope.typed(member.until, context, BOOL, "`until`") if member.until is not None else None
    if (member.delay is None) == (member.until is None):
        what = "both `delay` and `until`: give one of them" if member.delay else "neither `delay` nor `until`"
        scope.report.error(MISSING_FIELD, f"the permit has {what}", member.name.span)
        return None
    pairs = ((member.delay, delay), (member.timeout, timeout), (member.until, until))
    if not good or any(written is not None and value is None for written, value in pairs):
        return None
    if not _in_time(scope, member, delay, timeout):
        return None
    return ir.Permit(name=member.name.text, when=when, delay=delay, until=until, timeout=timeout, span=member.span)


def _duration(scope: PolicyScope, written: syntax.Expr | None, name: str, context: Context) -> ir.Expr | None:
    if written is None:
        return None
    value = scope.typed(written, context, DURATION, f"`{name}`")
    if isinstance(value, ir.Const) and isinstance(value.value, int) and value.value <= 0:
        scope.report.error(WRONG_TIME, f"`{name}` is longer than nothing", written.span)
        return None
    return value


def _in_time(scope: PolicyScope, member: syntax.Permit, delay: ir.Expr | None, timeout: ir.Expr | None) -> bool:
    """Whether the delay ends before the timeout, where both are known."""
    ends = [one.value for one in (delay, timeout) if isinstance(one, ir.Const) and isinstance(one.value, int)]
    if len(ends) < 2 or ends[0] < ends[1] or member.timeout is None:
        return True
    message = "the timeout comes no later than the delay ends, so every pod would be refused"
    scope.report.error(WRONG_TIME, message, member.timeout.span)
    return False
