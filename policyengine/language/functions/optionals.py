"""Functions of optionals: `orValue or hasValue value`, and `optional.of none ofNonZeroValue`."""

from __future__ import annotations

from collections.abc import Mapping

from policyengine.language.functions.answer_bounds import ANY_NUMBER, NO_NUMBER, Bounds, hull, of_numbers
from policyengine.language.functions.table import Cost, Function, Signatures, Style, function, of_evaluate
from policyengine.language.values import NONE, EvaluationError, Optional


def value_of(optional: Optional) -> object:
    """The content. Raises EvaluationError: there is none."""
    if not optional.present:
        raise EvaluationError("the optional is empty")
    return optional.content


def of_non_zero(value: object) -> Optional:
    """An optional of the value, empty for null, false, 0, '' and what is empty itself."""
    if value is None or (isinstance(value, bool | int | float | str | list | tuple | Mapping) and not value):
        return NONE
    return Optional(value)


def _method(name: str, doc: str, overloads: Signatures, bounds: Bounds) -> Function:
    return function(name, Style.METHOD, doc, overloads, bounds=bounds, cost=Cost("logic"))


def _maker(name: str, doc: str, overloads: Signatures, bounds: Bounds, operation: str) -> Function:
    return function(name, Style.GLOBAL, doc, overloads, bounds=bounds, cost=Cost(operation))


_EITHER = of_numbers(lambda a, b: hull([a, b]))

FUNCTIONS: tuple[Function, ...] = (
    _method(
        "orValue",
        "the content, or a value where there is none",
        {"optional(T), T -> T": lambda held, default: held.content if held.present else default},
        _EITHER,
    ),
    _method(
        "or",
        "the first optional, or the second where the first is empty",
        {"optional(T), optional(T) -> optional(T)": lambda a, b: a if a.present else b},
        _EITHER,
    ),
    _method("hasValue", "whether there is a content", {"optional(T) -> bool": lambda held: held.present}, NO_NUMBER),
    of_evaluate("value", Style.METHOD, "the content; an error where there is none", {"optional(T) -> T": value_of}),
    _maker("optional.of", "an optional of the value", {"T -> optional(T)": Optional}, of_numbers(lambda a: a), "logic"),
    _maker("optional.none", "an empty optional", {"-> optional(T)": lambda: NONE}, NO_NUMBER, "text"),
    _maker(
        "optional.ofNonZeroValue",
        "an optional of the value, empty for 0, '', false and what is empty itself",
        {"T -> optional(T)": of_non_zero},
        ANY_NUMBER,
        "text",
    ),
)
