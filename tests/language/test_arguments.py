"""What is taken without jsonschema, jsonschema takes; what plugins are usually told is taken so."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from policyengine.language.checking import plugin_checks as checking
from policyengine.language.checking.json_schema import surely_fits
from policyengine.plugins.facts import plugin_facts

SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.0, 1.0, 1.5, "", "a", "ab", "cpu", "1"])
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "boolean", "integer", "number", "null"])


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    return st.recursive(st.just({}), lambda inner: _schema(inner | st.booleans()), max_leaves=5)


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(DATA, min_size=1, max_size=3),
            "const": DATA,
            "minimum": st.integers(-1, 2),
            "maximum": st.integers(-1, 2),
            "minLength": st.integers(0, 2),
            "pattern": st.sampled_from(["a", "^a$", "b"]),
            "minItems": st.integers(0, 2),
            "items": inner,
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from("abc"), inner, max_size=1),
            "additionalProperties": st.booleans() | inner,
            "not": inner,
            "uniqueItems": st.booleans(),
            "description": st.just("what it is"),
        },
    )


@given(schemas(), DATA)
@settings(max_examples=500, deadline=None)
def test_what_is_said_to_fit_fits_for_jsonschema_too(schema: dict[str, Any], data: object) -> None:
    if surely_fits(schema, data):
        assert Draft202012Validator(schema).is_valid(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}},
        ),
        ("NodeAffinity", {}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 5}),
    ],
)
def test_arguments_as_they_are_usually_given_need_no_jsonschema(
    name: str, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = plugin_facts()[name].arguments
    assert Draft202012Validator(schema).is_valid(data)
    monkeypatch.setitem(sys.modules, "jsonschema", None)  # an import of it would fail
    assert checking._first_error(schema, data) is None
