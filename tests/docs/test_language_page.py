"""The language's page: its examples load, its tables are the schema's, and it leaves nothing of the language out."""

from __future__ import annotations

import re

import pytest

from policyengine.language.diagnostics import render
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.parsing.grammar import STARTS, word_terminals
from policyengine.language.parsing.member_parser import parse_expression
from policyengine.language.schema import OBJECTS, ROOTS
from policyengine.policy_compiler import compile_text
from tests.docs.schema_tables import BEGIN, END, PAGE, written
from tests.shared_facts import shared

TEXT = PAGE.read_text(encoding="utf-8")
MADE = TEXT.split(BEGIN)[1].split(END)[0]
ONLY_DYNAMIC = frozenset(name for name, row in FUNCTIONS.items() if all(overload.dynamic for overload in row.overloads))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


POLICIES = blocks("policy")
EXPRESSIONS = [text for block in blocks("cel") for text in re.split(r"\n(?=\S)(?!several lines)", block.strip())]


def loads(text: str) -> bool:
    result = compile_text(text, "docs/language.md")
    assert not result.diagnostics, render(result.diagnostics, result.sources[0])
    return True


@pytest.mark.parametrize("text", POLICIES, ids=range(len(POLICIES)))
def test_a_policy_of_the_page_can_be_loaded(text: str) -> None:
    assert loads(text)


def test_the_training_policy_can_be_loaded() -> None:
    found = re.search(r"```\n(policy .*?)```", shared("language.md").read_text(), re.DOTALL)
    assert found and loads(found[1])


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_of_the_page_parses(text: str) -> None:
    assert parse_expression(text)[1] == []


def test_the_page_has_an_example_of_every_member() -> None:
    shown = "\n".join(POLICIES)
    members = [rule for rule in STARTS if rule != "expression"]
    assert [rule for rule in members if not re.search(rf"^ *{rule}\b", shown, re.MULTILINE)] == []


def test_the_page_names_every_word_that_means_something() -> None:
    assert [word for word in word_terminals() if not re.search(rf"\b{word}\b", TEXT)] == []


def test_every_function_of_a_policy_is_named() -> None:
    words = set(re.findall(r"\w+", TEXT))
    named = [name for name, row in FUNCTIONS.items() if row.style is not Style.OPERATOR and name not in ONLY_DYNAMIC]
    assert [name for name in named if re.split(r"[./]", name)[-1] not in words] == []


def test_the_tables_are_those_of_the_schema() -> None:
    assert written(TEXT) == TEXT, "run `python -m tests.docs.schema_tables`"


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_every_field_of_a_thing_is_on_the_page_with_its_type(name: str) -> None:
    for field in OBJECTS[name].fields.values():
        rows = [
            line for line in MADE.splitlines() if line.startswith((f"| `{field.name}` ", f"| `{name}.{field.name}` "))
        ]
        assert any(str(field.type) in row for row in rows), field.name


def test_every_root_is_on_the_page() -> None:
    assert all(f"| `{name}` | `{root.type}` |" in MADE for name, root in ROOTS.items())
