"""What computes a call: the implementation of the overload that it takes.

A call of a checked tree takes it by the static types of its arguments, once. A call of a dynamic tree (type dyn,
`policyengine.evaluate`) takes it by the values, each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.table import Implementation, Overload, dispatch, select
from policyengine.language.types import DYN, Kind, Type
from policyengine.language.values import EvaluationError, Optional, box, kind_of, optional, shortened


def implementation(expr: ir.Call) -> Implementation:
    """What computes a call: values in, the value out. It raises `EvaluationError` where there is none."""
    if expr.type == DYN:
        return partial(_dispatched, expr)
    return _of_types(expr.function, tuple([arg.type for arg in expr.args]), expr.type.kind is Kind.OPTIONAL)


@lru_cache(maxsize=4096)
def _of_types(name: str, types: tuple[Type, ...], is_optional: bool) -> Implementation:
    """The implementation for static types; it answers an `Optional` where the call's type is one."""
    implementation = _overload(name, types).implementation
    if not is_optional:
        return implementation

    def wrapping(*values: Any) -> Optional:
        answer = implementation(*values)
        return answer if isinstance(answer, Optional) else optional(answer)

    return wrapping


def _overload(name: str, types: tuple[Type, ...]) -> Overload:
    overloads = FUNCTIONS[name].overloads
    # An empty list or map literal has no element type of its own; it fits any.
    found = select(overloads, types) or select(overloads, [DYN if one.kind is Kind.DYN else one for one in types])
    if found is not None:
        return found[0]
    arity = [one for one in overloads if len(one.parameters) == len(types)]
    if len(arity) == 1:
        return arity[0]
    raise LookupError(f"no overload of `{name}` for ({', '.join(map(str, types))})")


def _dispatched(call: ir.Call, *values: Any) -> Any:
    """A function on values that carry their kinds. Raises EvaluationError: there is no such function, or none for these
    values, or it has no result."""
    row = FUNCTIONS.get(call.function)
    if row is None:
        raise EvaluationError(f"no function is called `{shortened(call.function)}`")
    taken: Sequence[Any] = values
    overload = dispatch(row.overloads, values)
    if overload is None:
        taken = _literals_as_doubles(call.args, values, alone=len(row.overloads) == 1)
        overload = dispatch(row.overloads, taken)
    if overload is None:
        kinds = ", ".join(kind_of(value).value for value in values) or "nothing"
        raise EvaluationError(f"`{call.function.strip('_@')}` does not take {kinds}")
    return box(overload.result, overload.implementation(*taken))


def _literals_as_doubles(args: Sequence[ir.Expr], values: Sequence[Any], *, alone: bool) -> list[Any]:
    """Int literals as doubles beside a double that is none (`100 * ratio(a, b)`), as a policy has them; where a
    function has one signature, `alone` too (`sqrt(2)`)."""
    written = [isinstance(arg, ir.Const) for arg in args]
    bent = alone or any(type(value) is float and not literal for value, literal in zip(values, written, strict=True))
    return [
        float(value) if bent and literal and type(value) is int else value
        for value, literal in zip(values, written, strict=True)
    ]
