"""YAML held against a schema: every complaint is one sentence with a line and a column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.checked_yaml import CheckedYaml, CheckedYamlError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "when": {"type": "string"},
        "shape": {
            "description": "{round: NUMBER} or {square: NUMBER}",
            "oneOf": [
                {"type": "object", "required": [kind], "properties": {kind: {"type": "number"}}}
                for kind in ("round", "square")
            ],
        },
        "parts": {"type": "array", "items": {"type": "string"}},
        "colour": {"enum": ["red", "green", None]},
    },
    "additionalProperties": False,
}


def test_what_is_valid_is_data_and_times_and_words_stay_text() -> None:
    text = "size: 3\nwhen: 2026-01-05T00:00:00Z\nparts: ['on', on, no, 'true']\nshape: {round: 1.5}\n"
    assert CheckedYaml(text, SCHEMA).data == {
        "size": 3,
        "when": "2026-01-05T00:00:00Z",
        "parts": ["on", "on", "no", "true"],
        "shape": {"round": 1.5},
    }


@pytest.mark.parametrize("number", ["1_0", "1:30", "0b11", "9" * 6000, "1_0.5", "1:30.5"])
def test_a_number_that_yaml_1_2_does_not_have_is_text(number: str) -> None:
    assert CheckedYaml(f"when: {number}", SCHEMA).data == {"when": number}


def test_numbers_are_read_as_yaml_1_2_has_them() -> None:
    numbers = "[010, 0x10, -7, 1.5, -.inf]"
    data = CheckedYaml(f"parts: {numbers}", {"type": "object"}).data
    assert data == {"parts": [10, 16, -7, 1.5, float("-inf")]}


def test_two_escapes_are_one_character_and_half_of_one_is_refused() -> None:
    assert CheckedYaml('{"when": "\\ud83d\\ude00"}', SCHEMA).data == {"when": "\U0001f600"}
    with pytest.raises(CheckedYamlError, match=r"it holds half a character \(a lone surrogate\) on line 2"):
        CheckedYaml('\nwhen: "\\ud83d"', SCHEMA)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("size: 0", "line 1, column 7: `size`: 0 is less than the minimum of 1"),
        ("\nsize: many", "line 2, column 7: `size`: `many` is not of type `integer`"),
        ("parts:\n  - a\n  - 3", "line 3, column 5: `parts.1`: 3 is not of type `string`"),
        ("shape: {round: x}", "line 1, column 16: `shape.round`: `x` is not of type `number`"),
        ("shape: {oval: 1}", "line 1, column 8: `shape`: wanted is {round: NUMBER} or {square: NUMBER}"),
        (
            "colour: gren",
            "line 1, column 9: `colour`: `gren` is not one of [`red`, `green`, None]; did you mean `green`?",
        ),
        ("colour: 7", "line 1, column 9: `colour`: 7 is not one of [`red`, `green`, None]"),
        ("size: 1\nsize: 2", "line 2, column 1: the key `size` is there twice"),
        ("[a]: 1", "line 1, column 1: a key is a text"),
        ("size: 1\n---\nsize: 2", "it is not one YAML document with keys and values"),
    ],
)
def test_what_is_not_valid_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(CheckedYamlError) as error:
        CheckedYaml(text, SCHEMA)
    assert str(error.value) == told


def test_a_place_that_is_not_written_is_that_of_what_it_would_be_in() -> None:
    document = CheckedYaml("size: 1\nshape: {round: 2}", SCHEMA)
    assert str(document.wrong(("shape", "round"), "no")) == "line 2, column 16: no"
    assert str(document.wrong(("shape", "square", "side"), "no")) == "line 2, column 8: no"
    assert str(document.wrong(("parts", 3), "no")) == "line 1, column 1: no"


PLAIN = st.recursive(
    st.integers() | st.text(max_size=8) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80)
@given(st.text(max_size=80))
def test_any_text_is_data_or_a_complaint(text: str) -> None:
    try:
        assert isinstance(CheckedYaml(text, SCHEMA).data, dict)
    except CheckedYamlError as error:
        assert str(error)


@settings(max_examples=80)
@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=3))
def test_json_is_read_as_it_is(data: dict[str, Any]) -> None:
    assert CheckedYaml(json.dumps(data), {}).data == data
