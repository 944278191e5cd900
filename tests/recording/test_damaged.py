"""Recordings that nobody wrote: entries in any order, of any content, behind checksums that match."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
from click.testing import CliRunner

from policyengine.commands.main import cli
from policyengine.recording.directory import files
from policyengine.recording.replay import Replay
from policyengine.recording.segment import MAGIC, SegmentReader, SegmentWriter, UnusableRecording
from tests.recording.test_replay import recorded

Entries = list[bytes]


def entries_of(path: Path) -> Entries:
    with path.open("rb") as file:
        frames = list(SegmentReader(file, path.name).frames())
    return [
        msgspec.msgpack.encode([one.now, one.name, one.body, *([msgspec.Raw(one.actions)] if one.actions else [])])
        for frame in frames
        for one in frame
    ]


def shuffled(chance: Random, entries: Entries) -> Entries:
    return chance.sample(entries, len(entries))


def shuffled_behind_the_first(chance: Random, entries: Entries) -> Entries:
    return [*entries[:3], *chance.sample(entries[3:], len(entries) - 3)]


def thinned(chance: Random, entries: Entries) -> Entries:
    return [one for one in entries if chance.random() < 0.7]


def doubled(chance: Random, entries: Entries) -> Entries:
    return [one for one in entries for _ in range(1 + (chance.random() < 0.2))]


def with_flipped_bits(chance: Random, entries: Entries) -> Entries:
    found = []
    for entry in entries:
        spoilt = bytearray(entry)
        if chance.random() < 0.1:
            spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
        found.append(bytes(spoilt))
    return found


def with_bodies_of_others(chance: Random, entries: Entries) -> Entries:
    parts = [msgspec.msgpack.decode(one, type=list[msgspec.Raw]) for one in entries]
    for one in parts:
        if chance.random() < 0.1:
            one[2] = chance.choice(parts)[2]
    return [msgspec.msgpack.encode(one) for one in parts]


def at_times_of_no_day(chance: Random, entries: Entries) -> Entries:
    parts = [msgspec.msgpack.decode(one, type=list[msgspec.Raw]) for one in entries]
    times = (float("nan"), float("inf"), -1.0, 1e300, "then", 0.0)
    for one in parts:
        if chance.random() < 0.1:
            one[0] = msgspec.Raw(msgspec.msgpack.encode(chance.choice(times)))
    return [msgspec.msgpack.encode(one) for one in parts]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "spoil",
    [shuffled, shuffled_behind_the_first, thinned, doubled, with_flipped_bits, with_bodies_of_others,
     at_times_of_no_day],
)  # fmt: skip
def test_whatever_a_recording_holds_it_is_played_or_one_sentence_says_why_not(
    tmp_path: Path, spoil: Callable[[Random, Entries], Entries], seed: int
) -> None:
    recorded(tmp_path, pods=12)
    (path,) = files(tmp_path)
    spoilt = spoil(Random(seed), entries_of(path))
    frames, writer = [spoilt[start : start + 40] for start in range(0, len(spoilt), 40)], SegmentWriter()
    path.write_bytes(MAGIC + b"".join(map(writer.frame, frames)))
    try:
        replay = Replay(path)
        replay.play()
    except UnusableRecording as error:
        assert str(error).startswith(path.name) and "\n" not in str(error)
    else:
        assert replay.difference or replay.notes or replay.messages <= len(spoilt)
    for command in (["replay", str(path)], ["replay", str(path), "queue"]):
        told = CliRunner().invoke(cli, command)
        assert told.exit_code in (0, 1, 2)
        assert told.exception is None or isinstance(told.exception, SystemExit | UnusableRecording), told.exception
