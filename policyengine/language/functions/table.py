"""The function table's rows: one record a function, its overloads, and how one of them is chosen.

A record writes its overloads as `"list(T), T -> bool": implementation`. `T`, `K` and `V` are type variables, DYN types
with a name; a word of `GROUPS` stands for each of several types in turn. In a policy the overload follows from static
types; in dynamic evaluation from the values. Rules of an implementation: plain values in their grain in and out, None
for an empty optional result, `EvaluationError` for no result, nothing else raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import repeat
from typing import NamedTuple

from msgspec import Struct

from policyengine.language.functions.answer_bounds import NO_POLICY, Bounds
from policyengine.language.types import QOS, Kind, Type, types_in
from policyengine.language.values import Optional, kind_of

Implementation = Callable[..., object]
Signatures = Mapping[str, Implementation]
"""How an overload is written -> what computes it."""

_SCALABLE = "cpu, memory, storage, duration"
GROUPS: Mapping[str, Sequence[Type]] = {
    "scalable": types_in(_SCALABLE, {}),
    "counted": types_in(f"int, {_SCALABLE}", {}),
    "comparable": types_in(f"int, double, {_SCALABLE}, timestamp", {}),
    "ordered": types_in(f"int, double, string, bool, {_SCALABLE}, timestamp, qos", {"qos": QOS}),
}
_NAMES = {"qos": QOS, **{name: Type(Kind.DYN, (), name) for name in "TKV"}}


class Style(Enum):
    """How a function is written."""

    OPERATOR = "operator"
    GLOBAL = "global"
    METHOD = "method"
    BOTH = "both"


class Overload(Struct, frozen=True):
    """One signature. `dynamic`: for `policyengine.evaluate` only, a policy has to convert first."""

    parameters: tuple[Type, ...]
    result: Type
    implementation: Implementation
    dynamic: bool = False


class Cost(NamedTuple):
    """What a call costs."""

    operation: str
    """The row of `lint.cost.MICROSECONDS` that it is."""
    rank: int | None = None
    """Beside other conjuncts, where 1 is an addition; None: by whether it reads strings."""


class Function(Struct, frozen=True):
    """A function or operator: all that the language knows of it. Its kernel is in `compiler.columns.kernels`."""

    name: str
    style: Style
    doc: str
    overloads: tuple[Overload, ...]
    bounds: Bounds
    """Of its answer, in the answer's grain."""
    cost: Cost
    mutants: tuple[str, ...]
    """The functions that a mutant of a policy calls in its place."""
    literals: frozenset[int] = frozenset()
    """The arguments that must be literals in a policy."""
    added: int = 0
    """How many of the first arguments the checker adds: no policy writes them."""

    @property
    def is_dynamic(self) -> bool:
        """Whether only `policyengine.evaluate` has it."""
        return all(overload.dynamic for overload in self.overloads)


def function(
    name: str,
    style: Style,
    doc: str,
    overloads: Signatures,
    *,
    dynamic: Signatures | None = None,
    bounds: Bounds,
    cost: Cost,
    mutants: Sequence[str] = (),
    literals: Sequence[int] = (),
    added: int = 0,
) -> Function:
    """A row of the table; `dynamic` are the overloads for `policyengine.evaluate` only."""
    found = [
        Overload(parameters, result, implementation, is_dynamic)
        for signatures, is_dynamic in ((overloads, False), (dynamic or {}, True))
        for text, implementation in signatures.items()
        for parameters, result in signature(text)
    ]
    return Function(name, style, doc, tuple(found), bounds, cost, tuple(mutants), frozenset(literals), added)


def of_evaluate(name: str, style: Style, doc: str, overloads: Signatures) -> Function:
    """A row that only `policyengine.evaluate` has."""
    return function(name, style, doc, {}, dynamic=overloads, bounds=NO_POLICY, cost=Cost("text"))


def signature(text: str) -> Iterator[tuple[tuple[Type, ...], Type]]:
    """The parameters and results that `counted, counted -> bool` stands for: one pair, or one for each of the group."""
    group = next((word for word in GROUPS if word in text), "")
    for one in GROUPS.get(group, (None,)):
        known = _NAMES if one is None else {**_NAMES, group: one}
        *parameters, result = types_in(text, known)
        yield tuple(parameters), result


def unify(parameter: Type, actual: Type, variables: dict[str, Type]) -> bool:
    """Whether the actual type fits the parameter; binds the parameter's type variables as it goes."""
    if parameter.kind is Kind.DYN and parameter.name:
        return variables.setdefault(parameter.name, actual) == actual
    if parameter.kind is not actual.kind or parameter.name != actual.name or len(parameter.args) != len(actual.args):
        return False
    return not parameter.args or all(map(unify, parameter.args, actual.args, repeat(variables)))


def substitute(type_: Type, variables: Mapping[str, Type]) -> Type:
    """The type with its variables replaced; an unbound one stays."""
    if type_.kind is Kind.DYN and type_.name:
        return variables.get(type_.name, type_)
    if not type_.args:
        return type_
    return Type(type_.kind, tuple(substitute(arg, variables) for arg in type_.args), type_.name)


def is_open(type_: Type) -> bool:
    """Whether a type variable is left in the type."""
    return (type_.kind is Kind.DYN and bool(type_.name)) or (bool(type_.args) and any(map(is_open, type_.args)))


def accepts(parameter: Type, value: object) -> bool:
    """Whether a value that carries its kind fits a parameter (dynamic evaluation)."""
    if parameter.kind is Kind.DYN:
        return True
    if parameter.kind is not kind_of(value) or (parameter.name and parameter.kind is Kind.INT):
        return False
    if isinstance(value, list | tuple):
        return all(accepts(parameter.args[0], item) for item in value)
    if isinstance(value, Optional):
        return not value.present or accepts(parameter.args[0], value.content)
    return True


def dispatch(overloads: Sequence[Overload], values: Sequence[object]) -> Overload | None:
    """The overload whose parameters the values fit, None without one (dynamic evaluation)."""
    for overload in overloads:
        if len(overload.parameters) == len(values) and all(map(accepts, overload.parameters, values)):
            return overload
    return None


def select(overloads: Sequence[Overload], types: Sequence[Type]) -> tuple[Overload, Type] | None:
    """The overload for static types, with its result type; None without one."""
    for overload in overloads:
        variables: dict[str, Type] = {}
        if len(overload.parameters) == len(types) and all(
            unify(parameter, actual, variables) for parameter, actual in zip(overload.parameters, types, strict=True)
        ):
            return overload, substitute(overload.result, variables)
    return None


def or_optional(text: str, implementation: Implementation) -> Signatures:
    """The overload, and the same on an optional argument: none in, none out."""

    def on_optional(held: Optional) -> object:
        return implementation(held.content) if held.present else None

    parameter, result = text.split(" -> ")
    return {text: implementation, f"optional({parameter}) -> {result}": on_optional}
