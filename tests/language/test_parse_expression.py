import json

import pytest
from hypothesis import given, settings

from policyengine.language import syntax
from policyengine.language.diagnostics import Source
from policyengine.language.parsing.expression_actions import MAX_DEPTH
from policyengine.language.parsing.member_parser import parse_expression
from policyengine.language.syntax import Expr
from tests.language.expressions import EXPRESSIONS
from tests.language.trees import bare, brief, printed
from tests.shared_facts import shared

TREES = [
    # precedence and associativity
    ("a + b * c", "(+ a (* b c))"),
    ("(a + b) * c", "(* (+ a b) c)"),
    ("a - b - c", "(- (- a b) c)"),
    ("a / b % c", "(% (/ a b) c)"),
    ("a || b && c == d", "(|| a (&& b (== c d)))"),
    ("a < b == c", "(== (< a b) c)"),
    ("a in b && c", "(&& (in a b) c)"),
    ("!a.b", "(! (. a b))"),
    ("-a * b", "(* (- a) b)"),
    ("!!a", "(! (! a))"),
    ("a ? b : c ? d : e", "(? a b (? c d e))"),
    ("a || b ? c : d", "(? (|| a b) c d)"),
    # members, calls, optionals
    ("a.b.c", "(. (. a b) c)"),
    ("a.?b.c", "(. (.? a b) c)"),
    ("a[?b][c]", "([] ([?] a b) c)"),
    ("a.f(b, c).g()", "(.g() (.f() a b c))"),
    ("f(a,)", "(f() a)"),
    (".a.b", "(. .a b)"),
    ("a.`b-c/d e`", "(. a b-c/d e)"),
    ("has(a.b)", "(has() (. a b))"),
    ("a.all(x, x > 0)", "(.all() a x (> x 0))"),
    # lists and maps
    ("[]", "[]"),
    ("[a, ?b,]", "[a ?b]"),
    ("{}", "{}"),
    ("{a: 1, ?'b': c}", "{a: 1, ?'b': c}"),
    ("{a ? b : c : d}", "{(? a b c): d}"),
    ("[1, 2][0]", "([] [1 2] 0)"),
    # literals
    ("0x1F", "31"),
    ("7u", "7u"),
    (".5", "0.5"),
    ("1e3", "1000.0"),
    ("1E+5", "100000.0"),
    ("500m", "<500m>"),
    ("1.5Gi", "<1.5Gi>"),
    ("5min", "<5min>"),
    ("250ms", "<250ms>"),
    ("true == null", "(== true null)"),
    ("b'a\\x00'", "b'a\\x00'"),
    ("r'\\d+'", "'\\\\d+'"),
    ('"""a\n"b"""', "'a\\n\"b'"),
    ("'\\u00e9'", "'é'"),
    # keywords are names wherever no keyword is wanted
    ("pod.filter + score(1) + x.score(1)", "(+ (+ (. pod filter) (score() 1)) (.score() x 1))"),
    ("when && order.by", "(&& when (. order by))"),
    ("x.const.if.import", "(. (. (. x const) if) import)"),
    # white space and comments are nothing
    ("a // one\n + # two\n\tb", "(+ a b)"),
    ("\ufeffa\r\n+ b", "(+ a b)"),
]


@pytest.mark.parametrize(("text", "tree"), TREES)
def test_an_expression_has_the_tree_of_its_precedence(text: str, tree: str) -> None:
    found, findings = parse_expression(text)
    assert findings == []
    assert found is not None
    assert brief(found) == tree


def test_every_conformance_expression_parses() -> None:
    lines = shared("cel/conformance.jsonl").read_text().splitlines()
    expressions = [json.loads(line)["expr"] for line in lines]
    assert len(expressions) == 404
    assert [text for text in expressions if parse_expression(text)[1]] == []


@given(EXPRESSIONS)
@settings(max_examples=150)
def test_a_printed_tree_parses_to_itself(tree: Expr) -> None:
    found, findings = parse_expression(printed(tree))
    assert findings == []
    assert bare(found) == bare(tree)


@given(EXPRESSIONS)
@settings(max_examples=60)
def test_the_text_of_every_span_parses_to_its_node(tree: Expr) -> None:
    text = printed(tree)
    found, _ = parse_expression(text)
    assert isinstance(found, Expr)
    for node in _nodes(found):
        again, findings = parse_expression(text[node.span.start : node.span.end])
        assert findings == []
        assert bare(again) == bare(node)


def _nodes(node: object) -> list[Expr]:
    if isinstance(node, tuple):
        return [found for part in node for found in _nodes(part)]
    if not isinstance(node, syntax.Node):
        return []
    own = [node] if isinstance(node, Expr) else []
    return own + [found for name in node.__slots__ for found in _nodes(getattr(node, name))]


FINDINGS = [
    ("a = b", "PE0102", 1, 3, "`=` does not compare; write `==`"),
    ("a and b", "PE0103", 1, 3, "`and` is no operator; write `&&`"),
    ("a OR b", "PE0103", 1, 3, "`OR` is no operator; write `||`"),
    ("not a", "PE0103", 1, 1, "`not` is a name; write `!`"),
    ("a not in b", "PE0103", 1, 3, "`not in` is no operator; write `!(a in b)`"),
    ("if a then b", "PE0103", 1, 1, "there is no `if`; write `condition ? a : b`"),
    ("a;", "PE0104", 1, 2, "`;` ends nothing here: every member starts with its keyword"),
    ("a === b", "PE0105", 1, 3, "`===` is no operator; write `==`"),
    ("a & b", "PE0105", 1, 3, "`&` is no operator; write `&&`"),
    ("a ≤ b", "PE0105", 1, 3, "`≤` is no operator; write `<=`"),
    ("a\u00a0+ b", "PE0105", 1, 2, "an invisible character, U+00A0, stands here; write a space"),
    ("a + @", "PE0105", 1, 5, "`@` has no meaning in the language"),
    (
        "x\n + größe",
        "PE0105",
        2,
        6,
        "`öß` has no meaning in the language: names are made of ASCII letters, digits and `_`",
    ),
    ("(a + b", "PE0106", 1, 1, "`(` is never closed by `)`"),
    ("[a, (b]", "PE0106", 1, 7, "`(` is closed by `]`; write `)`"),
    ("a + b)", "PE0107", 1, 6, "`)` closes nothing"),
    ("Pod{name: 1}", "PE0111", 1, 4, 'there are no message literals; a map is written `{"key": value}`'),
    ("1h30min", "PE0201", 1, 1, "`1h30min` runs two durations together; write `90min`"),
    ("1h30m", "PE0201", 1, 1, "`1h30m` runs two durations together; write `90min`"),
    ("2s5ms", "PE0201", 1, 1, "`2s5ms` runs two durations together; write `2005ms`"),
    ("10GB", "PE0201", 1, 1, "`GB` is no suffix of a number; write `10G`"),
    ("5sec", "PE0201", 1, 1, "`sec` is no suffix of a number; write `5s`"),
    ("2gi", "PE0201", 1, 1, "`gi` is no suffix of a number; write `2Gi`"),
    ("7K", "PE0201", 1, 1, "`K` is no suffix of a number; write `7k`"),
    ("1_000", "PE0201", 1, 1, "`1_000` has `_` in a number; write `1000`"),
    ("1e", "PE0201", 1, 1, "`1e` is no number: its exponent has no digits"),
    ("3E", "PE0201", 1, 1, "`E` is no suffix, as `1E+5` is a number; write `3Ei` or an exponent"),
    ("0xfg", "PE0201", 1, 1, "`0xfg` is no hexadecimal number: its digits are 0-9 and a-f, after `0x`"),
    ("5 min", "PE0201", 1, 1, "a suffix stands right behind its number: `5min`"),
    ("1. + 2", "PE0201", 1, 2, "a number does not end in a dot; write `1.0`"),
    ("9223372036854775808", "PE0202", 1, 1, "`9223372036854775808` is too large: the number does not fit 64 bits"),
    ("1e400", "PE0202", 1, 1, "`1e400` is too large for a double"),
    ('"abc', "PE0203", 1, 1, 'the string that begins here has no closing `"` on its line'),
    ("'''a\nb", "PE0203", 1, 1, "the string that begins here has no closing `'''`"),
    ('"\\u12"', "PE0204", 1, 2, "`\\u` takes 4 hexadecimal digits"),
    ('"\\ud800"', "PE0204", 1, 2, "`\\ud800` is no character"),
    ("“abc”", "PE0205", 1, 1, 'typographic quotes do not make a string; write `"`'),
    ("[1 2]", "PE0101", 1, 4, "found `2` right behind `1`; is a `,` or an operator missing?"),
    ("", "PE0101", 1, 1, "found nothing, expected an expression"),
    ("a ? b", "PE0101", 1, 5, "found the end of the expression behind `b`, expected an operator or `:`"),
    ("a.in", "PE0101", 1, 3, "found `in`, expected a name or `?`"),
    ("a b", "PE0101", 1, 3, "found `b`, expected an operator or nothing more"),
    ("a" * 251, "PE0403", 1, 1, f"`{'a' * 39}…` has more than 250 characters"),
    (f"'{'a' * 10_000}'", "PE0403", 1, 1, "the string has more than 10,000 characters"),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "message"), FINDINGS)
def test_a_mistake_gives_one_finding_that_says_what_to_write(
    text: str, code: str, line: int, column: int, message: str
) -> None:
    _, findings = parse_expression(text)
    assert [(found.code, found.message) for found in findings] == [(code, message)]
    assert Source("", text).line_column(findings[0].span.start) == (line, column)


def test_a_fix_written_out_puts_the_mistake_right() -> None:
    for text, *_ in FINDINGS:
        _, findings = parse_expression(text)
        fix = findings[0].fix
        if fix:
            for edit in fix.edits:
                text = text[: edit.span.start] + edit.text + text[edit.span.end :]
            assert parse_expression(text)[1] == []


def test_the_least_integer_parses_and_its_magnitude_alone_does_not() -> None:
    assert parse_expression("-9223372036854775808")[1] == []
    assert parse_expression("-(9223372036854775808)")[1] != []
    assert parse_expression("1 - 9223372036854775808")[1] != []


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_DEPTH + 2) + "a" + ")" * (MAX_DEPTH + 2),
        "!" * MAX_DEPTH + "a",
        "!" * 70 + "a",
        "a" + ".b" * 70,
        " + ".join(["a"] * 70),
        "a ? b : " * 70 + "c",
        "f(" * 70 + ")" * 70,
        "-" * 5000 + "1",
    ],
)
def test_nesting_beyond_the_limit_is_one_finding(text: str) -> None:
    assert [found.code for found in parse_expression(text)[1]] == ["PE0401"]


def test_nesting_up_to_the_limit_is_none() -> None:
    assert parse_expression("!" * (MAX_DEPTH - 1) + "a")[1] == []
    assert parse_expression("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH)[1] == []
