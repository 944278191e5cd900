import re
from pathlib import Path

import pytest

from policyengine.language.diagnostics import Source, render
from policyengine.language.parse import parse_expression, parse_file
from policyengine.language.parsing.grammar import STARTS, word_terminals

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


POLICIES = blocks("policy")
EXPRESSIONS = [text for block in blocks("cel") for text in re.split(r"\n(?=\S)(?!several lines)", block.strip())]


@pytest.mark.parametrize("text", POLICIES, ids=range(len(POLICIES)))
def test_a_policy_of_the_page_parses(text: str) -> None:
    source = Source("docs/language.md", text)
    assert render(parse_file(source)[1], source) == ""


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_of_the_page_parses(text: str) -> None:
    assert parse_expression(text)[1] == []


def test_the_page_has_an_example_of_every_member() -> None:
    shown = "\n".join(POLICIES)
    members = [rule for rule in STARTS if rule != "expression"]
    assert [rule for rule in members if not re.search(rf"^ *{rule}\b", shown, re.MULTILINE)] == []


def test_the_page_names_every_word_that_means_something() -> None:
    assert [word for word in word_terminals() if not re.search(rf"\b{word}\b", PAGE)] == []
