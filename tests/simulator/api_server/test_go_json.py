import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policyengine.simulator.api_server.decoding import json_and_yaml as go_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def is_json(raw: bytes) -> bool:
    """Whether Python's reader takes a text."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(go_json.utf8(raw).decode(), parse_constant=refuse)
    except ValueError:
        return False
    return True


@given(values, st.integers(0, 200), st.binary(max_size=3))
def test_what_is_no_json_has_a_fault_in_gos_words(value: Any, at: int, damage: bytes) -> None:
    raw = json.dumps(value).encode()
    broken = raw[: at % (len(raw) + 1)] + damage + raw[at % (len(raw) + 1) :]
    assert is_json(broken) or go_json.fault(broken).startswith(("invalid ", go_json.END))


@given(st.binary(max_size=12))
def test_bytes_that_are_no_utf8_are_replaced_one_by_one(raw: bytes) -> None:
    lone = sum(0xDC80 <= ord(c) <= 0xDCFF for c in raw.decode("utf-8", "surrogateescape"))
    text = go_json.utf8(raw).decode()
    assert text.count("�") == lone + raw.decode("utf-8", "ignore").count("�")
    assert go_json.utf8(text.encode()) == text.encode()


@given(values)
def test_what_is_there_once_is_no_duplicate(value: Any) -> None:
    assert go_json.duplicates(json.dumps(value).encode()) == []


def test_duplicates_are_named_by_path() -> None:
    body = b'{"a":1,"b":{"c":1,"c":2},"d":[{"e":1},{"e":1,"e":2,"e":3}],"a":2}'
    assert go_json.duplicates(body) == ["a", "b.c", "d[1].e"]
