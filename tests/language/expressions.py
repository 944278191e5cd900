"""Random expression trees for properties: any tree the grammar has a text for, spans left at nought."""

from __future__ import annotations

from hypothesis import strategies as st

from policyengine.language import syntax
from policyengine.language.syntax import Expr, Span
from tests.language.trees import LEVELS

AT = Span(0, 0)
NAMES = st.sampled_from(
    ["a", "b", "pod", "node", "score", "filter", "when", "order", "desc", "x_1", "weight", "if", "on"]
)
BINARY = sorted(set(LEVELS) - {"?:"})


def _quantity(parts: tuple[str, str]) -> Expr:
    return syntax.QuantityLiteral(span=AT, number=parts[0], suffix=parts[1])


def _duration(parts: tuple[str, str]) -> Expr:
    return syntax.DurationLiteral(span=AT, number=parts[0], unit=parts[1])


NUMBERS = st.sampled_from(["0", "7", "1.5", "250"])
LEAVES: st.SearchStrategy[Expr] = st.one_of(
    st.one_of(
        st.booleans(),
        st.none(),
        st.integers(0, 2**63 - 1),
        st.floats(0, allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    ).map(lambda value: syntax.Literal(span=AT, value=value)),
    st.binary(max_size=3).map(lambda value: syntax.BytesLiteral(span=AT, value=value)),
    st.integers(0, 2**64 - 1).map(lambda value: syntax.UintLiteral(span=AT, value=value)),
    st.tuples(NUMBERS, st.sampled_from(["m", "k", "Gi", "T"])).map(_quantity),
    st.tuples(NUMBERS, st.sampled_from(["ms", "s", "min", "h", "d"])).map(_duration),
    st.builds(lambda name, dot: syntax.Name(span=AT, name=name, absolute=dot), NAMES, st.booleans()),
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.lists(st.tuples(inner, inner, st.booleans()), max_size=2)
    return st.one_of(
        st.builds(lambda op, a: syntax.Unary(span=AT, op=op, operand=a), st.sampled_from(["!", "-"]), inner),
        st.builds(
            lambda op, a, b: syntax.Binary(span=AT, op=op, left=a, right=b), st.sampled_from(BINARY), inner, inner
        ),
        st.builds(lambda a, b, c: syntax.Conditional(span=AT, condition=a, then=b, otherwise=c), inner, inner, inner),
        st.builds(
            lambda a, f, q: syntax.Select(span=AT, operand=a, field=f, field_span=AT, optional=q),
            inner,
            st.one_of(NAMES, st.sampled_from(["a-b", "a.b/c d"])),
            st.booleans(),
        ),
        st.builds(lambda a, k, q: syntax.Index(span=AT, operand=a, key=k, optional=q), inner, inner, st.booleans()),
        st.builds(
            lambda t, f, args: syntax.Call(span=AT, target=t, function=f, function_span=AT, args=tuple(args)),
            st.one_of(st.none(), inner),
            NAMES,
            st.lists(inner, max_size=2),
        ),
        st.lists(st.tuples(inner, st.booleans()), max_size=3).map(
            lambda items: syntax.ListLiteral(
                span=AT, items=tuple(syntax.ListItem(span=AT, value=v, optional=q) for v, q in items)
            )
        ),
        pairs.map(
            lambda entries: syntax.MapLiteral(
                span=AT, entries=tuple(syntax.MapEntry(span=AT, key=k, value=v, optional=q) for k, v, q in entries)
            )
        ),
    )


EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(LEAVES, _grown, max_leaves=12)
