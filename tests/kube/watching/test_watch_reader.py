"""How the lines of a watch are read: one by one, whole or not at all, and by either way with the same outcome."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.http.client import ApiError
from policyengine.kube.watching.store import Change, Malformed, Store
from tests.kube.scripted_server import bookmark, config_map, event, gone


@dataclass
class Reading:
    """What became of some lines."""

    changes: list[Change[ConfigMap]]
    failure: ApiError | Malformed | None
    version: str
    problems: list[str]


def read(*lines: Any, cut: int = 0) -> Reading:
    """What the lines bring, those before and after `cut` arriving apart."""
    problems: list[str] = []
    reader = Store(CONFIG_MAPS, problems.append)
    reader.version = "5"
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    changes, failure = reader.apply_lines(texts[:cut])
    if failure is None:
        more, failure = reader.apply_lines(texts[cut:])
        changes += more
    return Reading(changes, failure, reader.version, problems)


def test_lines_before_one_that_cannot_be_read_stand_and_none_behind_it() -> None:
    reading = read(event("ADDED", config_map("a", 6)), b"{", event("ADDED", config_map("b", 7)))
    assert len(reading.changes) == 1
    assert isinstance(reading.failure, Malformed)
    assert reading.version == "6"


def test_an_error_event_is_the_servers_answer() -> None:
    reading = read(bookmark(8), gone())
    assert isinstance(reading.failure, ApiError)
    assert (reading.failure.status, reading.version) == (410, "8")


def test_an_older_event_does_not_take_the_version_back() -> None:
    assert read(event("ADDED", config_map("a", 9)), event("ADDED", config_map("b", 7))).version == "9"


def test_an_event_of_an_unknown_type_is_refused() -> None:
    assert "`RENAMED`" in str(read(event("RENAMED", config_map("a", 6))).failure)


def test_a_page_strikes_out_what_is_not_missing() -> None:
    reader = Store(CONFIG_MAPS, lambda problem: None)
    reader.apply_lines([json.dumps(event("ADDED", config_map(name, 6))).encode() for name in "ab"])
    missing = reader.keys()
    changes = reader.apply_page([msgspec.Raw(json.dumps(config_map("a", 7)).encode())], missing, 7)
    assert len(changes) == 1
    assert missing == {"ns/b"}


def broken(version: int) -> dict[str, Any]:
    return config_map("c", version) | {"data": [version]}


VERSIONS = st.integers(3, 12)
OBJECTS = st.builds(config_map, st.sampled_from("ab"), VERSIONS, st.sampled_from(("", "other"))) | st.builds(
    broken, VERSIONS
)
LINES = st.one_of(
    st.builds(event, st.sampled_from(("ADDED", "MODIFIED", "DELETED", "BOOKMARK")), OBJECTS),
    st.builds(bookmark, VERSIONS),
    st.builds(event, st.just("MODIFIED"), st.sampled_from((3, None, {}, {"metadata": None}))),
    st.binary(max_size=12),
    st.just(gone()),
)


@settings(max_examples=150)
@given(st.lists(LINES, max_size=8), st.integers(0, 8))
def test_lines_change_the_same_however_they_arrive(lines: list[Any], cut: int) -> None:
    together, apart = read(*lines), read(*lines, cut=cut)
    assert together.changes == apart.changes
    assert (together.version, together.problems) == (apart.version, apart.problems)
    assert (type(together.failure), str(together.failure)) == (type(apart.failure), str(apart.failure))
