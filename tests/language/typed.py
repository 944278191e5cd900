"""Random expressions that mostly check, and values for whatever they read."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from policyengine.language import ir
from policyengine.language.scalar_evaluator import Closure, Names
from policyengine.language.schema import attribute
from policyengine.language.types import QOS, Kind, Type
from policyengine.language.values import INT64_MAX, INT64_MIN, NONE, BoolKey, Optional
from tests.fuzz.expression_writer import WRITTEN
from tests.fuzz.vocabulary import EVERY_POD, EVERYTHING, SCALARS, Where
from tests.fuzz.writer import Writer

ALONE = Where(EVERY_POD.roots - {"all"})
"""What an expression reads that `evaluate` gives a value."""


def sources(type_: str = "", depth: int = 3, where: Where = EVERYTHING) -> st.SearchStrategy[str]:
    """The text of an expression of a type."""

    def text(seed: int) -> str:
        writer = Writer(Random(seed))
        return writer.resolved(writer.text(type_ or writer.one(*SCALARS), where, depth), WRITTEN)

    return st.integers(0, 2**32).map(text)


class Anything(Names):
    """Names that have a value of the right type for every path."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._values: dict[tuple[str, ...], object] = {}

    def field(self, expr: ir.Field) -> Closure:
        path = expr.path
        if path not in self._values:
            known = attribute(path)
            assert known is not None
            self._values[path] = self._draw(values(known.type))
        value = self._values[path]
        return lambda evaluation: value


def values(type_: Type) -> st.SearchStrategy[object]:
    """Values of a type, as the evaluator holds them."""
    if type_ == QOS:
        return st.integers(0, 2)
    match type_.kind:
        case Kind.BOOL:
            return st.booleans()
        case Kind.DOUBLE:
            return st.floats()
        case Kind.STRING:
            return st.sampled_from(["", "a9", "x", "12", "Ä"])
        case Kind.LIST:
            return st.lists(values(type_.args[0]), max_size=2)
        case Kind.MAP:
            return st.dictionaries(values(type_.args[0]), values(type_.args[1]), max_size=2)
        case Kind.OPTIONAL:
            return st.one_of(st.just(NONE), values(type_.args[0]).map(Optional))
        case Kind.OBJECT:
            from policyengine.language.schema import object_info

            info = object_info(type_)
            assert info is not None
            must = {name: values(field.type) for name, field in info.fields.items() if not field.optional}
            may = {name: values(field.type) for name, field in info.fields.items() if field.optional}
            return st.fixed_dictionaries(must, optional=may)
        case _:
            return st.one_of(st.integers(-(2**40), 2**40), st.sampled_from([INT64_MIN, INT64_MAX, 0]))


def is_of(value: object, type_: Type) -> bool:
    """Whether a value is one of the type, all the way down."""
    match type_.kind:
        case Kind.BOOL:
            return isinstance(value, bool)
        case Kind.DOUBLE:
            return isinstance(value, float)
        case Kind.STRING:
            return isinstance(value, str)
        case Kind.LIST:
            return isinstance(value, list | tuple) and all(is_of(item, type_.args[0]) for item in value)
        case Kind.MAP:
            return isinstance(value, dict) and all(
                is_of(k.value if isinstance(k, BoolKey) else k, type_.args[0]) and is_of(v, type_.args[1])
                for k, v in value.items()
            )
        case Kind.OPTIONAL:
            return isinstance(value, Optional) and (not value.present or is_of(value.content, type_.args[0]))
        case Kind.OBJECT:
            return isinstance(value, dict)
        case _:
            return isinstance(value, int) and not isinstance(value, bool) and INT64_MIN <= value <= INT64_MAX
