"""Functions of optionals: `orValue or hasValue value`, and `optional.of none ofNonZeroValue`."""

from __future__ import annotations

from collections.abc import Mapping

from policyengine.language.functions.bounds import ANY_NUMBER, NO_NUMBER, NO_POLICY, hull, of_numbers
from policyengine.language.functions.table import Cost, Function, Overload, Style, T, function
from policyengine.language.types import BOOL, optional_of
from policyengine.language.values import NONE, EvaluationError, Optional


def value_of(optional: Optional) -> object:
    """The content.

    Raises:
        EvaluationError: there is none.
    """
    if not optional.present:
        raise EvaluationError("the optional is empty")
    return optional.content


def of_non_zero(value: object) -> Optional:
    """An optional of the value, empty for null, false, 0, '' and what is empty itself."""
    if value is None or (isinstance(value, bool | int | float | str | list | tuple | Mapping) and not value):
        return NONE
    return Optional(value)


_HELD = of_numbers(lambda a: a)
_EITHER = of_numbers(lambda a, b: hull([a, b]))

FUNCTIONS: tuple[Function, ...] = (
    function(
        "orValue",
        Style.METHOD,
        "the content, or a value where there is none",
        Overload((optional_of(T), T), T, Optional.or_value),
        bounds=_EITHER,
        cost=Cost("logic"),
        mutants=[],
    ),
    function(
        "or",
        Style.METHOD,
        "the first optional, or the second where the first is empty",
        Overload((optional_of(T), optional_of(T)), optional_of(T), lambda a, b: a if a.present else b),
        bounds=_EITHER,
        cost=Cost("logic"),
        mutants=[],
    ),
    function(
        "hasValue",
        Style.METHOD,
        "whether there is a content",
        Overload((optional_of(T),), BOOL, lambda optional: optional.present),
        bounds=NO_NUMBER,
        cost=Cost("logic"),
        mutants=[],
    ),
    function(
        "value",
        Style.METHOD,
        "the content; an error where there is none",
        Overload((optional_of(T),), T, value_of, dynamic=True),
        bounds=NO_POLICY,
        cost=Cost("text"),
        mutants=[],
    ),
    function(
        "optional.of",
        Style.GLOBAL,
        "an optional of the value",
        Overload((T,), optional_of(T), Optional),
        bounds=_HELD,
        cost=Cost("logic"),
        mutants=[],
    ),
    function(
        "optional.none",
        Style.GLOBAL,
        "an empty optional",
        Overload((), optional_of(T), lambda: NONE),
        bounds=NO_NUMBER,
        cost=Cost("text"),
        mutants=[],
    ),
    function(
        "optional.ofNonZeroValue",
        Style.GLOBAL,
        "an optional of the value, empty for 0, '', false and what is empty itself",
        Overload((T,), optional_of(T), of_non_zero),
        bounds=ANY_NUMBER,
        cost=Cost("text"),
        mutants=[],
    ),
)
