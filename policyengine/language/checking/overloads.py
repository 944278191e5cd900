"""Which overload arguments choose, and what literals become beside them.

It follows from the types of the arguments, from what kind of literal the others are, and where only literals stand from
the type that is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from policyengine.language import ir, syntax
from policyengine.language.checking.literal_types import fits, is_bare, natural
from policyengine.language.functions import Function, Overload
from policyengine.language.functions.table import is_open, substitute, unify
from policyengine.language.types import INT, Type, holds_object

EQUALITIES = frozenset({"_==_", "_!=_", "@in"})
"""Whether values are the same: objects are not compared."""


class Choice(NamedTuple):
    """An overload with the types its arguments take there. `cost`: how much literals had to bend."""

    cost: int
    overload: Overload
    types: tuple[Type, ...]
    result: Type
    """May hold a variable that nothing here decides."""


Argument = Type | syntax.Expr
"""What is known of an argument: its type, or the literal that it is."""


def overload_for(
    function: Function, args: Sequence[syntax.Expr], typed: Sequence[ir.Expr | None], expected: Type | None
) -> Choice | None:
    """The overload for these arguments, `typed` where they have a type of their own: the one that bends literals
    least, the first of several; None where none takes them."""
    known = tuple(written if checked is None else checked.type for written, checked in zip(args, typed, strict=True))
    if function.name in EQUALITIES and any(isinstance(arg, Type) and holds_object(arg) for arg in known):
        return None
    bending = _may_bend(function, known)
    choices = [
        choice
        for overload in function.overloads
        if not overload.dynamic
        and len(overload.parameters) == len(known)
        and (choice := _choice(overload, known, expected, bending)) is not None
    ]
    return min(choices, key=attrgetter("cost"), default=None)


def _choice(overload: Overload, arguments: Sequence[Argument], expected: Type | None, bending: bool) -> Choice | None:
    """The overload for these arguments, None where it does not take them."""
    variables: dict[str, Type] = {}
    for parameter, arg in zip(overload.parameters, arguments, strict=True):
        if isinstance(arg, Type) and not unify(parameter, arg, variables):
            return None
    cost, types = 0, list[Type]()
    for parameter, arg in zip(overload.parameters, arguments, strict=True):
        if isinstance(arg, Type):
            types.append(arg)
            continue
        bent = _bent(arg, parameter, variables, expected, bending)
        if bent is None:
            return None
        cost += bent[0]
        types.append(bent[1])
    return Choice(cost, overload, tuple(types), substitute(overload.result, variables))


def _may_bend(function: Function, arguments: Sequence[Argument]) -> bool:
    """Whether literals may leave their own type: beside an expression or a suffix, or where one signature decides."""
    if len(function.overloads) == 1 or len(arguments) == 1:
        return True
    return any(isinstance(arg, Type) or not is_bare(arg) for arg in arguments)


def _bent(
    arg: syntax.Expr, parameter: Type, variables: dict[str, Type], expected: Type | None, bending: bool
) -> tuple[int, Type] | None:
    """What a literal costs as this parameter, and its type there. A suffixed one would rather be a quantity."""
    wanted = substitute(parameter, variables)
    own = natural(arg, wanted if not is_open(wanted) and wanted.is_quantity else expected)
    if is_open(wanted):
        if own is None or not unify(parameter, own, variables):
            return None
        return 0, own
    if own == wanted:
        return 0, wanted
    if not bending or not fits(arg, wanted):
        return None
    return (2 if not is_bare(arg) and wanted == INT else 1), wanted
