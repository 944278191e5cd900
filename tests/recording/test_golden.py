"""Recordings of every version of the format stay readable, and what is written is what the schema says.

The files in `golden` were written once, when their version of the format was the newest, and are not written again.
Where policyengine decides otherwise on purpose, the digest here changes, and CHANGELOG.md says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from policyengine.commands.main import cli
from policyengine.recording.directory import files
from policyengine.recording.encoding import Decoder, Encoder, Entry, message_types, read_entry
from policyengine.recording.json_schema import schema
from policyengine.recording.replay import Replay
from policyengine.recording.segment import SegmentReader
from policyengine.scheduler import messages as m
from tests.recording.secret_worlds import lived
from tests.recording.test_encoding import MESSAGES
from tests.recording.test_redaction import KEY

GOLDEN = Path(__file__).with_name("golden")
PLAYED = {
    "1-world.recording": (221, "d5ef2e38faaf40e6"),
    "1-redacted.recording": (220, "c559734c53dde8d2"),
}
"""File -> messages, and the digest of what is asked for."""


def entries_of(path: Path) -> list[Entry]:
    with path.open("rb") as file:
        return [entry for frame in SegmentReader(file, path.name).frames() for entry in frame]


def plain(entry: Entry) -> Any:
    more = [msgspec.msgpack.decode(entry.actions)] if entry.actions else []
    return [entry.now, entry.name, msgspec.msgpack.decode(entry.body), *more]


@pytest.mark.parametrize("name", PLAYED)
def test_a_recording_of_an_earlier_version_plays_as_it_did(name: str) -> None:
    replay = Replay(GOLDEN / name)
    replay.play()
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
    assert (replay.messages, replay.digest) == PLAYED[name]


def test_every_message_of_an_earlier_version_is_read() -> None:
    decoder = Decoder()
    found = [decoder.message(entry) for entry in entries_of(GOLDEN / "1-messages.recording")[1:]]
    assert len(found) == 32 and None not in found
    assert set(map(type, found)) <= {type(one) for one in MESSAGES}


def test_there_is_no_golden_file_without_a_test() -> None:
    assert {one.name for one in GOLDEN.iterdir()} == {*PLAYED, "1-messages.recording"}


def test_what_is_written_is_what_the_schema_says(tmp_path: Path) -> None:
    for name, redaction in (("plain", None), ("redacted", KEY)):
        lived(tmp_path / name, 5, redaction)
    validator = Draft202012Validator(schema())
    for path in [*files(tmp_path / "plain"), *files(tmp_path / "redacted"), *sorted(GOLDEN.iterdir())]:
        said: dict[str, list[Entry]] = {}
        for entry in entries_of(path):
            said.setdefault(entry.name, []).append(entry)
        for entry in (one for of_a_kind in said.values() for one in of_a_kind[:20]):
            validator.validate(json.loads(json.dumps(plain(entry))))


def test_every_message_is_what_the_schema_says() -> None:
    validator, encoder = Draft202012Validator(schema()), Encoder()
    for message in MESSAGES:
        entry = read_entry(encoder.entry(1.0, message, encoder.body(message)))
        validator.validate(json.loads(json.dumps(plain(entry))))
    assert {one.__name__ for one in m.Message.__subclasses__()} == set(message_types())


@pytest.mark.parametrize(
    "wrong",
    [[1.0, "Nobody", {}], [1.0, "PodDeleted", {"namespace": 3, "name": "a"}], [1.0, "Tick"], ["then", "Tick", {}],
     [None, "Digest", "x"], [1.0, "Tick", {}, [["Nothing", {}]]]],
)  # fmt: skip
def test_the_schema_refuses_what_is_no_entry(wrong: list[Any]) -> None:
    assert not Draft202012Validator(schema()).is_valid(wrong)


def test_the_schema_is_printed() -> None:
    told = CliRunner().invoke(cli, ["replay", "--schema"])
    Draft202012Validator.check_schema(json.loads(told.stdout))
    assert json.loads(told.stdout) == json.loads(json.dumps(schema()))
