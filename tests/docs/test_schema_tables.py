"""The language's page names every field that a rule can see, and no other."""

import re
from pathlib import Path

import pytest

from policyengine.language.schema import OBJECTS, ROOTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text()
SECTION = PAGE.split("### What a rule can see\n")[1].split("\n### ")[0]
NAMES = {word for quoted in re.findall(r"`([^`]+)`", SECTION) for word in re.findall(r"[A-Za-z]+", quoted)}
OTHER = {"vendor", "x", "label"}
"""Words of the examples."""


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_every_field_of_a_thing_is_on_the_page(name: str) -> None:
    info = OBJECTS[name]
    assert {*info.fields, *info.methods} <= NAMES


def test_every_root_is_on_the_page() -> None:
    assert ROOTS.keys() <= NAMES


def test_the_page_names_no_field_that_is_not_there() -> None:
    known = {field for info in OBJECTS.values() for field in (*info.fields, *info.methods)}
    assert NAMES - known - ROOTS.keys() - OTHER == set()
