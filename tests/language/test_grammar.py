import pytest
from lark import Lark

from policyengine.language.parsing import grammar
from policyengine.language.parsing.grammar import STARTS, TABLE, compiled, folder, table


def test_the_kept_table_is_the_grammars() -> None:
    text = (folder() / "policy.lark").read_bytes()
    assert (folder() / TABLE).read_text() == compiled(text), "run python -m policyengine.language.parsing.grammar"


def test_the_grammar_is_lalr_without_a_conflict_and_no_two_terminals_collide() -> None:
    pytest.importorskip("interegular")
    text = (folder() / "policy.lark").read_text()
    parser = Lark(text, parser="lalr", strict=True, start=list(STARTS))
    assert parser.parse("a.b + f(1)[?x]", start="expression").data == "expression"


def test_a_table_of_another_grammar_is_not_used(tmp_path, monkeypatch) -> None:
    text = (folder() / "policy.lark").read_text()
    (tmp_path / "policy.lark").write_text(text.replace('"scheduler" STRING', '"scheduler" NAME'))
    (tmp_path / TABLE).write_bytes((folder() / TABLE).read_bytes())
    monkeypatch.setattr(grammar, "folder", lambda: tmp_path)
    made = table.__wrapped__()
    assert "STRING" not in made.rows[made.rows[made.starts["scheduler"]]["SCHEDULER"]]
