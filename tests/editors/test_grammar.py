"""The editors' colours against the lexer of the language: every keyword and form of literal there is."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.diagnostics import Source
from policyengine.language.parse import parse_file
from policyengine.language.parsing.grammar import patterns, word_terminals
from policyengine.language.parsing.tokens import tokenise
from tests.editors.textmate import Grammar, Scoped

ROOT = Path(__file__).parent.parent.parent
GRAMMAR = Grammar()
POLICIES = sorted((ROOT / "policies").glob("*.policy"))
EVERYTHING = (Path(__file__).parent / "everything.policy").read_text(encoding="utf-8")
NUMBERS = {
    "DURATION": "constant.numeric.duration.policy",
    "QUANTITY": "constant.numeric.quantity.policy",
    "FLOAT": "constant.numeric.float.policy",
    "UINT": "constant.numeric.unsigned.policy",
    "INT": "constant.numeric.integer.policy",
}
PATTERNS = patterns()


def words_as(text: str, *scopes: str) -> set[str]:
    """The words of a text that have a scope that begins with one of these."""
    found = [one for one in GRAMMAR.scopes(text) if one.scope.startswith(scopes)]
    return {word for one in found for word in re.findall(r"[A-Za-z]+", text[one.start : one.end])}


def scope_at(scopes: list[Scoped], start: int) -> str:
    return next((one.scope for one in scopes if one.start == start), "")


def test_the_sample_is_a_policy_that_parses():
    assert parse_file(Source("everything.policy", EVERYTHING))[1] == []


def test_every_word_of_the_grammar_is_coloured_as_a_keyword_where_it_is_one():
    coloured = words_as(EVERYTHING, "keyword.", "constant.language.", "variable.other.field.")
    assert set(word_terminals()) - coloured == set()


def test_nothing_but_words_of_the_grammar_and_names_of_fields_is_coloured_as_a_keyword():
    fields = {"key", "min", "timeout", "guarantee", "limit", "borrow", "delay", "until", "annotations", "error"}
    coloured = words_as(EVERYTHING, "keyword.", "constant.language.", "variable.other.field.")
    assert coloured - set(word_terminals()) - fields == set()


@pytest.mark.parametrize(
    "text",
    ["pod.filter", "x.score(1)", "gang.min", "a.test", "x.order", "x.let", "policy.name", "use.weight", "x.when"],
)
def test_a_word_that_is_used_as_a_name_is_no_keyword(text: str):
    assert words_as(text, "keyword.control", "keyword.other", "keyword.declaration") == set()


@pytest.mark.parametrize("kind", NUMBERS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_number_has_the_colour_of_its_kind(kind: str, data: st.DataObject):
    number = data.draw(
        st.from_regex(PATTERNS[kind].replace("(?![A-Za-z0-9_])", ""), fullmatch=True).filter(str.isascii)
    )
    first = tokenise(number, "n").tokens[0]
    if (first.kind, first.text) == (kind, number):  # `1m` matches the beginning of `1min`; the lexer says what it is
        assert GRAMMAR.scopes(number) == [Scoped(0, len(number), NUMBERS[kind])]


@pytest.mark.parametrize("number", ["1h30min", "5x", "0x1g", "12Kib"])
def test_a_number_that_runs_into_a_letter_is_none(number: str):
    assert not any(one.scope.startswith("constant.numeric") for one in GRAMMAR.scopes(number))


@pytest.mark.parametrize("prefix", ["", "r", "R", "b", "B", "br", "Rb"[::-1]])
@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''"])
@pytest.mark.parametrize("inside", ["", "text", "// no comment", "a # b", "12Gi", "{headroom} and {{"])
def test_every_form_of_string_is_one(prefix: str, quote: str, inside: str):
    text = f"{prefix}{quote}{inside}{quote}"
    token = tokenise(text, "s").tokens[0]
    assert (token.kind in ("STRING", "BYTES"), token.end) == (True, len(text))
    scopes = GRAMMAR.scopes(f"{text} == x")
    assert (scopes[0].start, scopes[0].end) == (0, len(text))
    assert scopes[0].scope.startswith("string.quoted.")


@pytest.mark.parametrize("comment", ["// a", "# a", '/// a "b" 12Gi'])
def test_a_comment_reaches_to_the_end_of_its_line(comment: str):
    scopes = GRAMMAR.scopes(f"let a = 1 {comment}\nlet b = 2\n")
    assert [one.end for one in scopes if one.scope.startswith("comment.")] == [len("let a = 1 ") + len(comment)]


def test_a_quoted_name_is_one():
    assert GRAMMAR.scopes("a.`b-c/d e`")[-1].scope == "variable.other.quoted.policy"


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_strings_numbers_and_comments_of_policies_are_coloured_as_the_lexer_reads_them(path: Path):
    text = path.read_text(encoding="utf-8")
    scopes = GRAMMAR.scopes(text)
    cut = tokenise(text, path.name)
    for token in cut.tokens:
        if token.kind in NUMBERS:
            assert scope_at(scopes, token.start) == NUMBERS[token.kind], token
        elif token.kind == "STRING":
            assert scope_at(scopes, token.start).startswith("string.quoted."), token
    assert [one.start for one in scopes if one.scope.startswith("comment.")] == [one.start for one in cut.comments]


# --- Vim ---------------------------------------------------------------------------------------------------


def test_vim_knows_every_word_of_the_grammar():
    written = (ROOT / "editors/vim/syntax/policy.vim").read_text(encoding="utf-8")
    known = {
        word for line in re.findall(r"^syn keyword policy\w+ (.*)$", written, re.MULTILINE) for word in line.split()
    }
    assert set(word_terminals()) - known == set()
