"""The CEL specification's conformance cases on plain values, through `policyengine.evaluate`."""

import json
from typing import Any

import pytest

from policyengine.language.evaluate import EvaluationError, evaluate
from tests.shared_facts import shared


def cases() -> list[Any]:
    """Every case with an id of its own; none where the shared folder is not there."""
    try:
        text = shared("cel/conformance.jsonl").read_text()
    except pytest.skip.Exception:
        return []
    rows = [json.loads(line) for line in text.splitlines()]
    return [pytest.param(row, id=f"{row['file']}/{row['section']}/{row['name']}/{at}") for at, row in enumerate(rows)]


def plain(typed: dict[str, Any]) -> Any:
    """A typed value of the file as a plain one."""
    ((kind, value),) = typed.items()
    if kind == "list":
        return [plain(item) for item in value]
    if kind == "map":
        return {plain(key): plain(content) for key, content in value}
    return float(value) if kind == "double" else value


def same(left: Any, right: Any) -> bool:
    """Equal in type and value, all the way down; NaN is itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float):
        return repr(left) == repr(right)

    return bool(left == right)


def test_all_404_cases_are_there() -> None:
    assert len(shared("cel/conformance.jsonl").read_text().splitlines()) == len(cases()) == 404


@pytest.mark.parametrize("case", cases())
def test_a_case_of_the_conformance_suite_answers_as_the_suite_says(case: dict[str, Any]) -> None:
    bindings = {name: plain(value) for name, value in case.get("bindings", {}).items()}
    if case.get("error"):
        with pytest.raises(EvaluationError):
            evaluate(case["expr"], bindings)
    else:
        assert same(evaluate(case["expr"], bindings), plain(case["value"]))
