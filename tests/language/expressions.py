"""Random expression trees for properties: any tree the grammar has a text for, spans left at nought."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from policyengine.language import syntax
from policyengine.language.syntax import Expr, Span
from tests.language.trees import LEVELS

AT = Span(0, 0)
NAMES = st.sampled_from(
    ["a", "b", "pod", "node", "score", "filter", "when", "order", "desc", "x_1", "weight", "if", "on"]
)
BINARY = sorted(set(LEVELS) - {"?:"})


def _node(kind: type[syntax.Node], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, span=st.just(AT), **fields)


NUMBERS = st.sampled_from(["0", "7", "1.5", "250"])
LEAVES: st.SearchStrategy[Expr] = st.one_of(
    _node(
        syntax.Literal,
        value=st.booleans()
        | st.none()
        | st.integers(0, 2**63 - 1)
        | st.floats(0, allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    ),
    _node(syntax.BytesLiteral, value=st.binary(max_size=3)),
    _node(syntax.UintLiteral, value=st.integers(0, 2**64 - 1)),
    _node(syntax.QuantityLiteral, number=NUMBERS, suffix=st.sampled_from(["m", "k", "Gi", "T"])),
    _node(syntax.DurationLiteral, number=NUMBERS, unit=st.sampled_from(["ms", "s", "min", "h", "d"])),
    _node(syntax.Name, name=NAMES, absolute=st.booleans()),
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    maybe, place = st.booleans(), st.just(AT)
    items = st.lists(_node(syntax.ListItem, value=inner, optional=maybe), max_size=3)
    entries = st.lists(_node(syntax.MapEntry, key=inner, value=inner, optional=maybe), max_size=2)
    fields = NAMES | st.sampled_from(["a-b", "a.b/c d"])
    args = st.lists(inner, max_size=2).map(tuple)
    return st.one_of(
        _node(syntax.Unary, op=st.sampled_from(["!", "-"]), operand=inner),
        _node(syntax.Binary, op=st.sampled_from(BINARY), left=inner, right=inner),
        _node(syntax.Conditional, condition=inner, then=inner, otherwise=inner),
        _node(syntax.Select, operand=inner, field=fields, field_span=place, optional=maybe),
        _node(syntax.Index, operand=inner, key=inner, optional=maybe),
        _node(syntax.Call, target=st.none() | inner, function=NAMES, function_span=place, args=args),
        _node(syntax.ListLiteral, items=items.map(tuple)),
        _node(syntax.MapLiteral, entries=entries.map(tuple)),
    )


EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(LEAVES, _grown, max_leaves=12)
