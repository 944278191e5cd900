"""The language's page: its examples load, and it leaves nothing of the language out."""

from __future__ import annotations

import re

import pytest

from policyengine.language.diagnostics import render
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.schema import OBJECTS, ROOTS
from policyengine.policy_compiler import compile_text
from tests.docs.test_language_examples import PAGE, POLICIES
from tests.shared_facts import shared

ONLY_DYNAMIC = frozenset(name for name, row in FUNCTIONS.items() if all(overload.dynamic for overload in row.overloads))


@pytest.mark.parametrize("text", POLICIES, ids=range(len(POLICIES)))
def test_a_policy_of_the_page_can_be_loaded(text: str) -> None:
    result = compile_text(text, "docs/language.md")
    assert not result.diagnostics, render(result.diagnostics, result.sources[0])


def test_the_training_policy_can_be_loaded() -> None:
    found = re.search(r"```\n(policy .*?)```", shared("language.md").read_text(), re.DOTALL)
    assert found
    result = compile_text(found[1])
    assert not result.diagnostics, render(result.diagnostics, result.sources[0])


def test_every_field_of_the_schema_is_named() -> None:
    words = set(re.findall(r"\w+", PAGE))
    assert [name for name in ROOTS if name not in words] == []
    assert [f"{o.name}.{field}" for o in OBJECTS.values() for field in o.fields if field not in words] == []


def test_every_function_of_a_policy_is_named() -> None:
    words = set(re.findall(r"\w+", PAGE))
    named = [name for name, row in FUNCTIONS.items() if row.style is not Style.OPERATOR and name not in ONLY_DYNAMIC]
    assert [name for name in named if re.split(r"[./]", name)[-1] not in words] == []
