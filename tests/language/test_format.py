import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.diagnostics import Source
from policyengine.language.format import format_source
from policyengine.language.parse import parse_file
from policyengine.language.parsing.tokens import tokenise
from policyengine.language.syntax import Expr
from tests.language.expressions import EXPRESSIONS
from tests.language.members import FILES
from tests.language.policies import EVERYTHING
from tests.language.trees import bare, printed
from tests.shared_facts import shared


def formatted(text: str) -> str:
    """The text in the one style; asserts what must hold of any text that is formatted."""
    source = Source("a.policy", text)
    found, findings = format_source(source)
    assert findings == []
    again, findings = format_source(Source("a.policy", found))
    assert findings == []
    assert again == found
    assert bare(parse_file(source)[0]) == bare(parse_file(Source("a.policy", found))[0])
    assert comments(text) == comments(found)
    return found


def comments(text: str) -> list[str]:
    return [comment.text.rstrip() for comment in tokenise(text, "").comments]


def member(text: str) -> str:
    """How a member alone in a policy is formatted, without its indent."""
    lines = formatted(f'policy "p" {{\n{text}\n}}').splitlines()
    assert lines[0] == 'policy "p" {' and lines[-1] == "}"
    return "\n".join(line.removeprefix("  ") for line in lines[1:-1])


CASES = [
    # spaces
    ("let   a=b", "let a = b"),
    ("let a = - b+ ( c*-d )", "let a = -b + (c * -d)"),
    ("let a = ! b . c [ ? d ] . ? e", "let a = !b.c[?d].?e"),
    ("let a = f ( b ,c ) . g ( )", "let a = f(b, c).g()"),
    ("let a = b?c:d ?e: f", "let a = b ? c : d ? e : f"),
    ("let a = [ ? b,c , ]", "let a = [?b, c]"),
    ("let a = {'b':1 , ?c : d}", "let a = {'b': 1, ?c: d}"),
    ("let a = [ ] + { }", "let a = [] + {}"),
    ("let a = b in[1]", "let a = b in [1]"),
    ("let a = b  &&  .c", "let a = b && .c"),
    ("function f ( a:int , b : map ( string,int ) ) :int=a", "function f(a: int, b: map(string, int)): int = a"),
    ("function f ( ) :int=1", "function f(): int = 1"),
    ("param a :int=1 range[0,1]", "param a: int = 1 range [0, 1]"),
    ("param a:int=1 values[0,1,]", "param a: int = 1 values [0, 1]"),
    ("use X weight 2 {a:1 b:{c:2}}", "use X weight 2 { a: 1, b: {c: 2} }"),
    ("use X{}", "use X {}"),
    ('on postBind   log"x"', 'on postBind log "x"'),
    # a field, a step, a require a line
    ('filter "f" { require a require b }', 'filter "f" {\n  require a\n  require b\n}'),
    ('filter "f" when a\n{ require b, require c }', 'filter "f" when a {\n  require b\n  require c\n}'),
    ("queue { order by a desc, b, backoff 1s..2s, }", "queue {\n  order by a desc, b\n  backoff 1s .. 2s\n}"),
    ('gang "g" { key: a, min: 1 }', 'gang "g" {\n  key: a\n  min: 1\n}'),
    ("preempt { maxVictims: 1 order by a }", "preempt {\n  maxVictims: 1\n  order by a\n}"),
    ('test "t" { after 1s expect "a" waits }', 'test "t" {\n  after 1s\n  expect "a" waits\n}'),
    ('test "t" { given param a . b = 1 }', 'test "t" {\n  given param a.b = 1\n}'),
    # line breaks of the author
    ('filter "f" { require a\nelse "b"\non\nerror c }', 'filter "f" {\n  require a\n    else "b"\n    on error c\n}'),
    ("let a = b ||\n\n\nc", "let a = b ||\n  c"),
    ("let a = [\n1, 2]", "let a = [\n  1,\n  2,\n]"),
    ("let a = [1,\n2\n]", "let a = [1,\n  2]"),
    ("let a = f(\nb)", "let a = f(\n  b,\n)"),
    ("let a = (\nb)", "let a = (\n  b\n)"),
    ("use X {\na: 1, b: {\n'c': 1 } }", "use X {\n  a: 1\n  b: {\n    'c': 1,\n  }\n}"),
    ("let a = 1\n\n\n\nlet b = 2", "let a = 1\n\nlet b = 2"),
    ("let a = 1 let b = 2", "let a = 1\nlet b = 2"),
    # comments
    ("let a = 1 // x  ", "let a = 1  // x"),
    ("/// doc\n     let a = 1", "/// doc\nlet a = 1"),
    ("let a = [1 // one\n, 2]", "let a = [1,  // one\n  2]"),
    ("let a = [ // one\n1]", "let a = [  // one\n  1,\n]"),
    ("let a = [1\n// one\n]", "let a = [\n  1,\n  // one\n]"),
    ('filter "f" { // x\nrequire a\n// y\n}', 'filter "f" {  // x\n  require a\n  // y\n}'),
    ("let a = b // why\n&& c", "let a = b  // why\n  && c"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_member_has_one_style(text: str, expected: str) -> None:
    assert member(text) == expected


def test_blocks_stand_apart_and_imports_together() -> None:
    text = '\ufeff\r\n\r\nimport "a"\r\nimport "b"\r\n// about p\r\npolicy "p"{}\r\npolicy "q"{\r\n\r\nlet a=1\r\n\r\n}'
    assert formatted(text) == ('import "a"\nimport "b"\n\n// about p\npolicy "p" {}\n\npolicy "q" {\n  let a = 1\n}\n')


def test_a_policy_with_everything_keeps_its_meaning_and_comments() -> None:
    assert "  // why\n" in formatted(EVERYTHING)


def test_the_training_policy_is_in_the_style_but_for_its_alignment() -> None:
    found = re.search(r"```\n(policy .*?)```", shared("language.md").read_text(), re.DOTALL)
    assert found
    text = found[1]
    same = [old for old, new in zip(text.splitlines(), formatted(text).splitlines(), strict=True) if old == new]
    assert len(same) >= len(text.splitlines()) - 7


def test_a_text_with_a_mistake_is_left_as_it_is() -> None:
    source = Source("a.policy", 'policy "p"   { let a = ( }')
    text, findings = format_source(source)
    assert text == source.text
    assert [found.code for found in findings] == ["PE0106"]


@given(EXPRESSIONS)
@settings(max_examples=100)
def test_any_expression_keeps_its_meaning(tree: Expr) -> None:
    formatted(f'policy "p" {{ let a = {printed(tree)} filter "f" {{ require {printed(tree)} }} }}')


@given(st.data())
@settings(max_examples=25)
def test_white_space_and_comments_anywhere_change_nothing_but_themselves(data: st.DataObject) -> None:
    tokens = tokenise(EVERYTHING, "").tokens
    gaps = data.draw(st.lists(st.integers(0, len(tokens) - 1), max_size=8))
    inserts = [" ", "\n", "\n\n\n", " // c\n", "\n# d\n", "\n\n/// e\n\n", "\t"]
    text = EVERYTHING
    for at in sorted(set(gaps), reverse=True):
        place = tokens[at].start
        text = text[:place] + data.draw(st.sampled_from(inserts)) + text[place:]
    source = Source("a.policy", text)
    if bare(without_docs(source)) == bare(without_docs(Source("", EVERYTHING))):
        formatted(text)


@given(FILES)
@settings(max_examples=60)
def test_any_file_keeps_its_meaning_and_its_comments(text: str) -> None:
    if not parse_file(Source("a.policy", text))[1]:
        formatted(text)


def without_docs(source: Source) -> object:
    file, findings = parse_file(source)
    return (file, len(findings)) if not findings else None
