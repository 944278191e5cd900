"""docs/plugins.md says what the registry says, and its examples compile."""

from __future__ import annotations

import re

import pytest

from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_text
from tests.docs.plugin_table import BEGIN, END, PAGE, generated

TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```policy\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def section(name: str) -> str:
    found = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/plugins.md has no section `### {name}`"
    return found[1]


def test_the_table_is_that_of_the_registry() -> None:
    shown = TEXT.split(BEGIN)[1].split(END)[0]
    assert shown == generated(), "run `python -m tests.docs.plugin_table`"


@pytest.mark.parametrize("name", IN_TREE)
def test_every_plugin_has_a_section_that_explains_its_arguments_and_score(name: str) -> None:
    entry, text = IN_TREE[name], section(name)
    properties = entry.arguments.get("properties", {})
    assert isinstance(properties, dict)
    assert [argument for argument in properties if f"`{argument}`" not in text] == []
    assert not entry.scores or "**Score" in text
    assert not entry.filters or "**Filter" in text


def test_sections_come_in_the_registrys_order_and_name_no_other_plugin() -> None:
    assert re.findall(r"^### (\w+)$", TEXT, re.MULTILINE) == list(IN_TREE)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_page_compiles(text: str) -> None:
    result = compile_text(text, "docs/plugins.md")
    assert [one.message for one in result.diagnostics if one.severity.name == "ERROR"] == []
    assert len(result.profiles) == 1


def test_every_plugin_with_arguments_has_an_example() -> None:
    shown = "\n".join(EXAMPLES)
    with_arguments = [name for name, entry in IN_TREE.items() if entry.arguments.get("properties")]
    assert [name for name in with_arguments if f"use {name}" not in shown] == []
