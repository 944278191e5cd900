"""Whole files of every kind of block and member, as texts: for properties of the parser, the formatter, the checker."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.language.expressions import EXPRESSIONS
from tests.language.trees import printed

EXPR = EXPRESSIONS.map(printed)
WORD = st.sampled_from(["a", "b2", "order", "max", "queue", "score"])
NAME = st.sampled_from(['"n"', "'two words'", 'r"raw"', '"""long"""'])
TYPE = st.sampled_from(["int", "list(string)", "map(string, optional(cpu))", "node"])
TEXT = st.sampled_from(['"plain"', "'{pod.name} on {node.name}'", '"{{x}} {1 + 2}"'])
NUMBER = st.sampled_from(["1", "2.5", "3Gi", "10s"])


def _joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    fixed = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*fixed).map(" ".join)


def _maybe(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    return st.just("") | _joined(*parts)


def _some(part: st.SearchStrategy[str], least: int, between: str) -> st.SearchStrategy[str]:
    return st.lists(part, min_size=least, max_size=3).map(between.join)


def _braced(*fields: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Some of the fields, in any order, with and without commas and line breaks."""
    picked = st.permutations(fields).flatmap(lambda order: st.tuples(*order))
    gaps = st.sampled_from([" ", ", ", "\n", "\n// between\n"])
    return st.tuples(picked, gaps).map(lambda pair: "{ " + pair[1].join(filter(None, pair[0])) + " }")


WHEN = _maybe("when", EXPR)
AMOUNTS = st.sampled_from(["{cpu: 4}", '{ memory: 8Gi, "nvidia.com/gpu": 2 }', "{}", "{\ncpu: 1, storage: 1Gi,\n}"])
KEY = _joined(EXPR, st.sampled_from(["", "asc", "desc", "missing first", "desc missing last"]))
ORDER = _joined("order by", _some(KEY, 1, ", "))
PARAMETER = st.tuples(WORD, TYPE).map(lambda pair: f"{pair[0]}: {pair[1]}")

PARAM = _joined(
    "param", WORD, ":", TYPE, "=", EXPR, _maybe("range [", NUMBER, ",", NUMBER, "]") | _maybe("values [1, 2,]")
)
LET = _joined("let", WORD, "=", EXPR)
FUNCTION = _joined("function", WORD, "(", _some(PARAMETER, 0, ", "), ") :", TYPE, "=", EXPR)
REQUIRE = _joined("require", EXPR, _maybe("else", TEXT), _maybe("on error", EXPR))
FILTER = _joined("filter", NAME, WHEN, "{", _some(REQUIRE, 0, "\n"), "}")
SCORE = _joined(
    "score", NAME, _joined("weight", EXPR) | st.just("tier"), WHEN,
    _maybe("normalize", st.sampled_from(["max", "minmax reverse"])), "=", EXPR, _maybe("on error", EXPR),
)  # fmt: skip
QUOTA = _joined(
    "quota", NAME, _joined("by", EXPR, WHEN) | _joined("when", EXPR),
    _braced(_maybe("guarantee:", AMOUNTS), _maybe("limit:", AMOUNTS), _maybe("borrow:", EXPR)),
)  # fmt: skip
TEST = _joined(
    "test", NAME, "{",
    _some(
        st.one_of(
            _joined("given node", NAME, _maybe("{ allocatable: {cpu: 4}, ready: true }")),
            _joined("given pod", NAME, _maybe("on", NAME), _maybe("{ labels: {} }")),
            _joined("given param a . b =", EXPR),
            _joined("after", NUMBER),
            _joined("expect", NAME, "rejected", _maybe("on", NAME), _maybe("by", NAME)),
            _joined("expect that", EXPR),
        ), 0, "\n",
    ), "}",
)  # fmt: skip
SHARED = st.one_of(PARAM, LET, FUNCTION)
ADDED = st.one_of(SHARED, FILTER, SCORE, QUOTA, TEST)
OWN = st.one_of(
    ADDED,
    _joined("scheduler", NAME),
    _joined("base", WORD),
    _joined("share", NUMBER),
    _joined("use", WORD, _maybe("weight", EXPR), _maybe("{ a: 1, b: {c: [2]} }")),
    _joined("disable", WORD),
    _joined(
        "queue",
        _braced(
            st.just("") | ORDER, _maybe("fair by", EXPR, _maybe('weight {"a": 2, "b": .5}')),
            _maybe("backoff", NUMBER, "..", NUMBER), _maybe("flush", NUMBER),
        ),
    ),
    _joined("gang", NAME, WHEN, _braced(_joined("key:", EXPR), _maybe("min:", EXPR), _maybe("waits:", EXPR))),
    _joined("permit", NAME, WHEN, _braced(_maybe("delay:", EXPR), _maybe("until:", EXPR), _maybe("timeout:", EXPR))),
    _joined("preempt", WHEN, _braced(_maybe("victims:", EXPR), st.just("") | ORDER, _maybe("maxVictims:", EXPR))),
    _joined("on", WORD, WHEN, "log", TEXT),
    _joined("bind { annotations: {", st.sampled_from(["", 'a: "x"', '"b/c": "{node.name}", d: r"x",']), "} }"),
)  # fmt: skip


def _block(head: st.SearchStrategy[str], member: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    members = st.lists(member, max_size=most).map("\n".join)
    return _joined(head, "{", st.sampled_from(["", "\n", " // first\n"]), members, "}")


FILES = st.lists(
    st.one_of(
        _joined("import", NAME, _maybe("as", WORD)),
        _block(_joined("library", NAME), SHARED, 3),
        _block(_joined("policy", NAME), OWN, 5),
        _block(_joined("overlay", NAME, "on", NAME, WHEN), ADDED, 3),
    ),
    min_size=1,
    max_size=3,
).map("\n".join)
"""Texts of whole files."""
