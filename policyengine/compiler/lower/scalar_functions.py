"""The language's function table for single values in a policy: overloads chosen by static types, once.

The transcendental functions are those of the columns here: libm may differ from them in the last bit, and a value
must not depend on whether it was worked out for one node or for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from policyengine.compiler.columns import arithmetic_kernels
from policyengine.compiler.columns.column import INT64_MAX, Column
from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.table import select
from policyengine.language.types import DYN, Kind, Type
from policyengine.language.values import NONE, EvaluationError, Optional

Implementation = Callable[..., Any]


def _through(kernel: arithmetic_kernels.Kernel) -> Implementation:
    """A kernel of double columns as a function of floats."""

    def scalar(*values: float) -> float:
        with np.errstate(all="ignore"):
            answer = kernel(*(Column(np.array(value), bound=INT64_MAX) for value in values))
        if answer.faults is not None and answer.faults.any():
            raise EvaluationError("betaCdf wants positive a and b")
        return float(answer.values)

    return scalar


KERNELS: Mapping[str, Implementation] = {
    name: _through(kernel) for name, kernel in arithmetic_kernels.TRANSCENDENTAL.items()
}
"""Function name -> the scalar form of its column kernel."""


def scalar_function(call: ir.Call) -> Implementation:
    """The implementation of a call's overload; it answers an `Optional` where the call's type is one."""
    return _implementation(call.function, tuple([arg.type for arg in call.args]), call.type.kind is Kind.OPTIONAL)


@lru_cache(maxsize=4096)
def _implementation(name: str, types: tuple[Type, ...], is_optional: bool) -> Implementation:
    kernel = KERNELS.get(name)
    if kernel is not None:
        return kernel
    implementation = _overload(name, types)
    return _optional(implementation) if is_optional else implementation


def _overload(name: str, types: tuple[Type, ...]) -> Implementation:
    function = FUNCTIONS[name]
    found = select(function.overloads, types) or select(function.overloads, [_loosened(type_) for type_ in types])
    if found is not None:
        return found[0].implementation
    arity = [one for one in function.overloads if len(one.parameters) == len(types)]
    if len(arity) == 1:
        return arity[0].implementation
    shown = ", ".join(map(str, types))
    raise LookupError(f"no overload of `{name}` for ({shown})")


def _loosened(type_: Type) -> Type:
    """An empty list or map literal has no element type of its own; it fits any."""
    return DYN if type_.kind is Kind.DYN else type_


def _optional(implementation: Implementation) -> Implementation:
    def wrapped(*values: Any) -> Optional:
        answer = implementation(*values)
        if isinstance(answer, Optional):
            return answer
        return NONE if answer is None else Optional(answer)

    return wrapped
