"""Random expressions that mostly check, and values for whatever they read."""

from __future__ import annotations

from hypothesis import strategies as st

from policyengine.language import ir
from policyengine.language.evaluator import Closure, Names
from policyengine.language.schema import attribute
from policyengine.language.types import QOS, Kind, Type
from policyengine.language.values import INT64_MAX, INT64_MIN, NONE, BoolKey, Optional

_SCALARS = {
    "int": ["0", "1", "7", "(-3)", "9223372036854775807", "pod.priority", "node.podCount", "cluster.nodeCount"],
    "double": ["0.0", "1.5", "(-2.5)", "1e300", "ratio(node.used.cpu, node.allocatable.cpu)", "random()"],
    "cpu": ["500m", "node.free.cpu", "pod.requests.cpu", "pod.limits.?cpu.orValue(1)"],
    "memory": ["2Gi", "node.free.memory", "pod.requests.memory"],
    "duration": ["90s", "(-1h)", "(now - pod.createdAt)"],
    "bool": ["true", "false", "node.ready", '("x" in pod.labels)', "has(pod.limits.cpu)"],
    "string": ['""', '"a9"', "pod.namespace", "node.zone", 'pod.labels[?"x"].orValue("y")', "string(pod.qos)"],
    "timestamp": ["now", "pod.createdAt", "node.createdAt"],
}
_NUMBERS = ["int", "double"]
_SCALED = ["cpu", "memory", "duration"]
_ORDERED = [*_NUMBERS, *_SCALED, "string", "timestamp"]


@st.composite
def sources(draw: st.DrawFn, type_: str | None = None, depth: int = 3) -> str:
    """The text of an expression of a type."""
    type_ = type_ or draw(st.sampled_from(sorted(_SCALARS)))
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(_SCALARS[type_]))

    def inner(of: str) -> str:
        return draw(sources(of, depth - 1))

    forms = [lambda: f"({inner('bool')} ? {inner(type_)} : {inner(type_)})"]
    if type_ == "bool":
        of = draw(st.sampled_from(_ORDERED))
        compare = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
        forms += [
            lambda: f"({inner(of)} {compare} {inner(of)})",
            lambda: f"({inner('bool')} {draw(st.sampled_from(['&&', '||']))} {inner('bool')})",
            lambda: f"!{inner('bool')}",
            lambda: f"pod.images.exists(i{depth}, i{depth}.contains({inner('string')}))",
            lambda: f"pod.tolerations.all(t{depth}, t{depth}.key == {inner('string')} || {inner('bool')})",
        ]
    elif type_ in _NUMBERS:
        operator = draw(st.sampled_from(["+", "-", "*", "/"]))
        forms += [
            lambda: f"({inner(type_)} {operator} {inner(type_)})",
            lambda: f"clamp({inner(type_)}, {inner(type_)}, {inner(type_)})",
            lambda: f"max({inner(type_)}, {inner(type_)})",
            lambda: f"abs({inner(type_)})",
        ]
        if type_ == "int":
            forms += [
                lambda: f"({inner('int')} % {inner('int')})",
                lambda: f"floor({inner('double')})",
                lambda: f"toInt({inner('string')}).orValue({inner('int')})",
                lambda: f"size({inner('string')})",
                lambda: f"{inner('timestamp')}.getHours()",
            ]
        else:
            of = draw(st.sampled_from(_SCALED))
            forms += [lambda: f"({inner(of)} / {inner(of)})", lambda: f"sqrt({inner('double')})"]
    elif type_ in _SCALED:
        number = draw(st.sampled_from(_NUMBERS))
        forms += [
            lambda: f"({inner(type_)} {draw(st.sampled_from('+-'))} {inner(type_)})",
            lambda: f"({inner(type_)} {draw(st.sampled_from('*/'))} {inner(number)})",
            lambda: f"min({inner(type_)}, {inner(type_)})",
        ]
    elif type_ == "string":
        forms += [lambda: f"({inner('string')} + {inner('string')})", lambda: f"{inner('string')}.upperAscii()"]
    else:
        forms += [lambda: f"({inner('timestamp')} + {inner('duration')})"]
    return draw(st.sampled_from(forms))()


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
