"""Keys to order by: of the queue, and of the pods that make room."""

from __future__ import annotations

from collections.abc import Callable

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import WRONG_TYPE
from policyengine.language.checking.context import Context, is_error
from policyengine.language.checking.policy_scope import PolicyScope
from policyengine.language.types import BOOL, DOUBLE, DURATION, INT, QOS, STRING, TIMESTAMP, Kind, Type
from policyengine.language.values import with_article


def check_order_key(
    scope: PolicyScope, key: syntax.OrderKey, context: Context, in_place: Callable[[ir.Expr], bool]
) -> ir.OrderKey | None:
    """A key, None (reported) for a wrong one. `in_place` reports what may not be read here."""
    value = scope.checker.check(key.value, context)
    if is_error(value):
        return None
    content = value.type.args[0] if value.type.kind is Kind.OPTIONAL else value.type
    if not is_ordered(content):
        scope.report.error(WRONG_TYPE, f"{with_article(value.type)} has no order to sort by", key.value.span)
        return None
    if not in_place(value):
        return None
    return ir.OrderKey(value=value, descending=key.descending, missing_first=key.missing == "first", span=key.span)


def is_ordered(type_: Type) -> bool:
    """Whether values of the type have an order."""
    return type_ in (INT, DOUBLE, STRING, BOOL, DURATION, TIMESTAMP, QOS) or type_.is_quantity
