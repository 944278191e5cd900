import pickle
from pathlib import Path

import pytest

from policyengine.language.parsing.grammar import OPERATORS, AnyTerminal, folder, keyword_terminals, lark_of, parser

GRAMMAR = (folder() / "policy.lark").read_text()


def test_the_grammar_is_lalr_without_a_conflict_and_no_two_terminals_collide() -> None:
    pytest.importorskip("interegular")
    made = lark_of(GRAMMAR, strict=True)
    assert made.parse("a.b + f(1)[?x]", start="expression").data == "expression"


def test_a_cache_is_written_once_and_read_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "policy.cache"
    lark_of(GRAMMAR, kept)
    written = kept.read_bytes()
    monkeypatch.setattr("lark.lark.load_grammar", None)
    assert lark_of(GRAMMAR, kept).parse("a", start="expression")
    assert kept.read_bytes() == written


@pytest.mark.parametrize("damage", [b"", b"no cache", pickle.dumps({})])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    kept = tmp_path / "policy.cache"
    kept.write_bytes(damage)
    assert lark_of(GRAMMAR, kept).parse("a", start="expression")
    assert len(kept.read_bytes()) > 10_000


def test_the_cache_of_another_grammar_is_not_used(tmp_path: Path) -> None:
    kept = tmp_path / "policy.cache"
    lark_of(GRAMMAR.replace('"scheduler" STRING', '"scheduler" NAME'), kept)
    assert lark_of(GRAMMAR, kept).parse('scheduler "a"', start="scheduler")


def test_a_folder_that_cannot_be_written_to_costs_time_only(tmp_path: Path) -> None:
    assert lark_of(GRAMMAR, tmp_path / "missing" / "policy.cache").parse("a", start="expression")


def test_the_lexer_reads_all_terminals_everywhere_but_contextual_keywords() -> None:
    names = {terminal.name for terminal in parser().terminals}
    reserved = {"TRUE", "FALSE", "NULL", "IN"}
    assert AnyTerminal.always_accept == names - (keyword_terminals() - reserved) - {"WHITESPACE", "COMMENT"}
    assert AnyTerminal.always_accept > OPERATORS
