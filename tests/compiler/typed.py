"""Typed trees, built by hand or drawn at random: what the checker would hand over."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from policyengine.language import ir
from policyengine.language.schema import TAINT, attribute
from policyengine.language.syntax import Span
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    INT,
    MEMORY,
    STRING,
    Reach,
    Shape,
    Type,
    list_of,
    optional_of,
)
from tests.compiler.worlds import GPU, KEYS, WORDS

HERE = Span(0, 0)


def const(value: Any, type_: Type) -> ir.Const:
    return ir.Const(type=type_, span=HERE, value=value)


def field(*path: str) -> ir.Field:
    known = attribute(path)
    assert known is not None, path
    return ir.Field(type=known.type, span=HERE, shape=known.shape, reach=known.reach, path=path)


def _of(*parts: ir.Expr) -> dict[str, Any]:
    return {
        "span": HERE,
        "shape": max((part.shape for part in parts), default=Shape.SCALAR),
        "reach": max((part.reach for part in parts), default=Reach.CONSTANT),
    }


def call(function: str, type_: Type, *args: ir.Expr) -> ir.Call:
    return ir.Call(type=type_, function=function, args=args, **_of(*args))


def logic(op: Any, *operands: ir.Expr) -> ir.Logic:
    return ir.Logic(type=BOOL, op=op, operands=operands, **_of(*operands))


def conditional(condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Conditional:
    return ir.Conditional(
        type=then.type, condition=condition, then=then, otherwise=otherwise, **_of(condition, then, otherwise)
    )


def index(operand: ir.Expr, key: ir.Expr, type_: Type, optional: bool = False) -> ir.Index:
    result = optional_of(type_) if optional else type_
    return ir.Index(type=result, operand=operand, key=key, optional=optional, **_of(operand, key))


def fold(kind: ir.Fold, source: ir.Expr, variable: str, body: ir.Expr, type_: Type = BOOL) -> ir.Comprehension:
    return ir.Comprehension(
        type=type_, fold=kind, source=source, variables=(variable,), condition=None, body=body, **_of(source, body)
    )


def local(name: str, type_: Type, source: ir.Expr) -> ir.Local:
    return ir.Local(type=type_, span=HERE, shape=source.shape, reach=source.reach, name=name)


def select(operand: ir.Expr, name: str, type_: Type) -> ir.Select:
    return ir.Select(type=type_, operand=operand, name=name, **_of(operand))


def opt_map(operand: ir.Expr, variable: str, body: ir.Expr) -> ir.OptMap:
    return ir.OptMap(type=optional_of(body.type), operand=operand, variable=variable, body=body, **_of(operand, body))


def text(value: str) -> ir.Const:
    return const(value, STRING)


def label(root: str, key: str, optional: bool = True) -> ir.Index:
    return index(field(root, "labels"), text(key), STRING, optional)


# --- at random -------------------------------------------------------------------------------------------

Drawn = st.SearchStrategy[ir.Expr]
_INTS = (0, 1, -1, 2, 3, 7, 100, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
_DOUBLES = (0.0, -0.0, 1.0, -1.5, 0.1, 0.5, 2.5, 1e9, 2.0**62, 2.0**63, 1e308, float("inf"), float("nan"))
_AMOUNTS = (0, 1, -3, 250, 1000, 2**30, 2**50, 2**61)


@cache
def ints(depth: int) -> Drawn:
    leaves = st.one_of(
        st.sampled_from(_INTS).map(lambda value: const(value, INT)),
        st.just(field("node", "podCount")),
        st.just(field("pod", "priority")),
    )
    if depth == 0:
        return leaves
    inner = ints(depth - 1)
    return st.one_of(
        leaves,
        _binary(("_+_", "_-_", "_*_", "_/_", "_%_", "min", "max"), INT, inner),
        _unary(("-_", "abs"), INT, inner),
        _unary(("floor", "ceil", "round"), INT, doubles(depth - 1)),
        _clamped(INT, inner),
        _conditional(depth, inner),
        _or_value(int_optionals(depth - 1), inner),
        _unary(("size",), INT, strings(depth - 1)),
        st.just(call("size", INT, field("node", "taints"))),
    )


@cache
def doubles(depth: int) -> Drawn:
    leaves = st.sampled_from(_DOUBLES).map(lambda value: const(value, DOUBLE))
    if depth == 0:
        return leaves
    inner = doubles(depth - 1)
    return st.one_of(
        leaves,
        _unary(("double",), DOUBLE, ints(depth - 1)),
        _binary(("_+_", "_-_", "_*_", "_/_", "ratio", "min", "max"), DOUBLE, inner),
        _binary(("ratio",), DOUBLE, ints(depth - 1)),
        _binary(("_/_", "ratio"), DOUBLE, quantities(MEMORY, depth - 1)),
        _binary(("_/_", "ratio"), DOUBLE, quantities(CPU, depth - 1)),
        _unary(("-_", "abs", "sqrt"), DOUBLE, inner),
        _clamped(DOUBLE, inner),
        _conditional(depth, inner),
    )


@cache
def quantities(type_: Type, depth: int) -> Drawn:
    name = type_.kind.value
    leaves = st.one_of(
        st.sampled_from(_AMOUNTS).map(lambda value: const(value, type_)),
        st.sampled_from(
            [field("node", kind, name) for kind in ("allocatable", "used", "free")] + [field("pod", "requests", name)]
        ),
    )
    if depth == 0:
        return leaves
    inner = quantities(type_, depth - 1)
    return st.one_of(
        leaves,
        _binary(("_+_", "_-_", "min", "max"), type_, inner),
        _unary(("-_", "abs"), type_, inner),
        _mixed(("_*_", "_/_"), type_, inner, ints(depth - 1)),
        _mixed(("_*_", "_/_"), type_, inner, doubles(depth - 1)),
        _conditional(depth, inner),
    )


@cache
def string_optionals(depth: int) -> Drawn:
    lookups = st.sampled_from([label(root, key) for root in ("pod", "node") for key in KEYS])
    notes = st.sampled_from(
        [index(field("node", "annotations"), text(key), STRING, optional=True) for key in ("note", "cost")]
    )
    if depth == 0:
        return st.one_of(lookups, notes)
    dynamic = strings(depth - 1).map(lambda key: index(field("node", "labels"), key, STRING, optional=True))
    return st.one_of(lookups, notes, dynamic, _binary(("or",), optional_of(STRING), string_optionals(depth - 1)))


@cache
def int_optionals(depth: int) -> Drawn:
    amounts = st.sampled_from(
        [index(field(*path), text(GPU), INT, optional=True) for path in (("pod", "requests"), ("node", "free"))]
    )
    if depth == 0:
        return amounts
    return st.one_of(
        amounts,
        _unary(("toInt",), optional_of(INT), st.one_of(strings(depth - 1), string_optionals(depth - 1))),
        _binary(("or",), optional_of(INT), int_optionals(depth - 1)),
        st.builds(
            lambda held, body: opt_map(held, "held", call("_+_", INT, local("held", INT, held), body)),
            int_optionals(depth - 1),
            ints(depth - 1),
        ),
    )


@cache
def strings(depth: int) -> Drawn:
    leaves = st.one_of(
        st.sampled_from(WORDS).map(text),
        st.sampled_from([field("node", "name"), field("node", "zone"), field("pod", "name")]),
        st.sampled_from([label(root, key, optional=False) for root in ("pod", "node") for key in KEYS]),
    )
    if depth == 0:
        return leaves
    inner = strings(depth - 1)
    return st.one_of(
        leaves,
        _binary(("_+_",), STRING, inner),
        _unary(("lowerAscii",), STRING, inner),
        _unary(("string",), STRING, ints(depth - 1)),
        _conditional(depth, inner),
        _or_value(string_optionals(depth - 1), inner),
    )


@cache
def bools(depth: int) -> Drawn:
    leaves = st.one_of(
        st.booleans().map(lambda value: const(value, BOOL)),
        st.sampled_from([field("node", "ready"), field("node", "unschedulable")]),
        st.sampled_from(
            [call("@in", BOOL, text(key), field(root, "labels")) for root in ("pod", "node") for key in KEYS]
        ),
    )
    if depth == 0:
        return leaves
    inner = bools(depth - 1)
    ordered = ("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_")
    return st.one_of(
        leaves,
        *(
            _binary(ordered, BOOL, operand)
            for operand in (
                ints(depth - 1),
                doubles(depth - 1),
                strings(depth - 1),
                quantities(CPU, depth - 1),
                quantities(MEMORY, depth - 1),
            )
        ),
        _binary(("_==_", "_!=_"), BOOL, string_optionals(depth - 1)),
        _binary(("startsWith", "endsWith", "contains"), BOOL, strings(depth - 1)),
        _unary(("!_",), BOOL, inner),
        _unary(("hasValue",), BOOL, st.one_of(string_optionals(depth - 1), int_optionals(depth - 1))),
        st.builds(
            lambda op, parts: logic(op, *parts), st.sampled_from(("&&", "||")), st.lists(inner, min_size=2, max_size=3)
        ),
        _conditional(depth, inner),
        _over_taints(strings(depth - 1)),
        _over_images(strings(depth - 1)),
        st.builds(
            lambda item, items: call("@in", BOOL, item, _list(items)),
            strings(depth - 1),
            st.lists(strings(0), min_size=1, max_size=3),
        ),
    )


def _list(items: list[ir.Expr]) -> ir.ListExpr:
    return ir.ListExpr(type=list_of(STRING), items=tuple((item, False) for item in items), **_of(*items))


def _over_taints(wanted: Drawn) -> Drawn:
    source = field("node", "taints")
    taint = local("taint", TAINT, source)

    def build(kind: ir.Fold, name: str, other: ir.Expr) -> ir.Expr:
        return fold(kind, source, "taint", call("_==_", BOOL, select(taint, name, STRING), other))

    return st.builds(build, _folds, st.sampled_from(("key", "value")), wanted)


def _over_images(wanted: Drawn) -> Drawn:
    source = field("pod", "images")
    image = local("image", STRING, source)
    return st.builds(
        lambda kind, part: fold(kind, source, "image", call("contains", BOOL, image, part)), _folds, wanted
    )


_folds = st.sampled_from((ir.Fold.ALL, ir.Fold.EXISTS, ir.Fold.EXISTS_ONE))


def _unary(names: tuple[str, ...], type_: Type, operand: Drawn) -> Drawn:
    return st.builds(lambda name, a: call(name, type_, a), st.sampled_from(names), operand)


def _binary(names: tuple[str, ...], type_: Type, operand: Drawn) -> Drawn:
    return _mixed(names, type_, operand, operand)


def _mixed(names: tuple[str, ...], type_: Type, left: Drawn, right: Drawn) -> Drawn:
    return st.builds(lambda name, a, b: call(name, type_, a, b), st.sampled_from(names), left, right)


def _clamped(type_: Type, operand: Drawn) -> Drawn:
    return st.builds(lambda a, b, c: call("clamp", type_, a, b, c), operand, operand, operand)


def _conditional(depth: int, inner: Drawn) -> Drawn:
    return st.builds(conditional, bools(depth - 1), inner, inner)


def _or_value(held: Drawn, default: Drawn) -> Drawn:
    return st.builds(lambda o, d: call("orValue", d.type, o, d), held, default)


ANY: dict[str, Callable[[int], Drawn]] = {
    "bool": bools,
    "int": ints,
    "double": doubles,
    "string": strings,
    "cpu": lambda depth: quantities(CPU, depth),
    "memory": lambda depth: quantities(MEMORY, depth),
    "optional(string)": string_optionals,
    "optional(int)": int_optionals,
}
