from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.simulator.api_server.kinds.api_types import struct
from policyengine.simulator.api_server.reading.selectors import parse_labels
from policyengine.simulator.api_server.statuses import ApiError
from policyengine.simulator.api_server.writing import patch_formats as strategic
from policyengine.simulator.api_server.writing.patch_formats import apply_json_patch, merge

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=2), values, max_size=4)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # from RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


@given(objects, objects)
def test_a_merge_patch_applied_twice_is_a_merge_patch_applied_once(target: Any, patch: Any) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once


def test_json_patch_operations_move_copy_and_append() -> None:
    patch = [
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "test", "path": "/a", "value": 1},
        {"op": "move", "from": "/a", "path": "/b"},
        {"op": "copy", "from": "/list", "path": "/copy"},
        {"op": "replace", "path": "/list/0", "value": 0},
        {"op": "add", "path": "/a~1b", "value": 1},
    ]
    result = apply_json_patch({"a": 1, "list": [1, 2]}, patch)
    assert result == {"b": 1, "list": [0, 2, 3], "copy": [1, 2, 3], "a/b": 1}


operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "test"]), "path": st.text(max_size=4), "value": values}
)


@given(objects, st.lists(operations, max_size=3))
def test_no_json_patch_breaks_anything_but_itself(target: Any, patch: Any) -> None:
    try:
        apply_json_patch(target, patch)
    except ApiError as error:
        assert error.code in (400, 422)


def test_retained_keys_clear_the_rest_of_a_union() -> None:
    volume = {"name": "v", "emptyDir": {}}
    patch = {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}
    merged = strategic.apply_strategic({"volumes": [volume]}, patch, struct("core/v1:PodSpec"))
    assert merged == {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}


def test_items_of_a_primitive_list_are_deleted_by_value() -> None:
    patch = {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}
    merged = strategic.apply_strategic({"finalizers": ["a", "b"]}, patch, struct("meta:ObjectMeta"))
    assert merged == {"finalizers": ["b", "c"]}


@pytest.mark.parametrize(
    ("selector", "labels", "found"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b,c!=d", {"a": "b"}, True),
        ("a in (x, y),!z", {"a": "y"}, True),
        ("a notin (x,y)", {}, True),
        ("a", {}, False),
        ("a=", {"a": ""}, True),
        ("n>3,n<9", {"n": "5"}, True),
        ("n>3", {"n": "x"}, False),
    ],
)
def test_label_selectors_mean_what_they_say(selector: str, labels: dict[str, str], found: bool) -> None:
    assert parse_labels(selector).matches(labels) is found


@given(st.text(max_size=15))
def test_no_text_breaks_a_label_selector(text: str) -> None:
    try:
        parse_labels(text).matches({"a": "b"})
    except ApiError as error:
        assert error.code == 400
