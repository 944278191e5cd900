"""How the lines of a watch are read: one by one, whole or not at all, and by either way with the same outcome."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.objects import ConfigMap
from policyengine.kube.http.client import ApiError
from policyengine.kube.watching.store import Change, Malformed, Store, WatchReader
from tests.kube.scripted_server import bookmark, config_map, event, gone


@dataclass
class Reading:
    """What became of some lines."""

    changes: list[Change[ConfigMap]]
    failure: ApiError | Malformed | None
    version: str
    problems: list[str]


def read(*lines: Any, keeps_texts: bool = False) -> Reading:
    known, problems = Store[ConfigMap](), list[str]()
    if keeps_texts:
        known.keep_texts()
    reader = WatchReader(CONFIG_MAPS, known, problems.append)
    reader.reach("5")
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    changes, failure = reader.apply_lines(texts)
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
    known = Store[ConfigMap]()
    reader = WatchReader(CONFIG_MAPS, known, lambda problem: None)
    reader.apply_lines([json.dumps(event("ADDED", config_map(name, 6))).encode() for name in "ab"])
    missing = known.keys()
    changes = reader.apply_page([msgspec.Raw(json.dumps(config_map("a", 7)).encode())], missing)
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


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=8))
def test_an_object_decoded_with_its_line_or_by_itself_changes_the_same(lines: list[Any]) -> None:
    at_once, in_parts = read(*lines), read(*lines, keeps_texts=True)
    assert at_once.changes == in_parts.changes
    assert (at_once.version, at_once.problems) == (in_parts.version, in_parts.problems)
    assert (type(at_once.failure), str(at_once.failure)) == (type(in_parts.failure), str(in_parts.failure))
