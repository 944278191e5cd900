"""One file of a recording, whole, cut and damaged."""

from __future__ import annotations

import io
import struct
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.recording.encoding import Entry
from policyengine.recording.segment import LARGEST, MAGIC, SegmentReader, SegmentWriter, UnusableRecording

FRAMES = [[msgspec.msgpack.encode([float(at), "Tick", {"pad": "x" * at}])] * (at % 3 + 1) for at in range(40)]


def written(frames: list[list[bytes]]) -> tuple[bytes, list[int]]:
    """(a file, where each of its frames ends)."""
    writer, content, ends = SegmentWriter(), MAGIC, []
    for entries in frames:
        content += writer.frame(entries)
        ends.append(len(content))
    return content, ends


def read(content: bytes) -> tuple[list[list[Entry]], bool]:
    """(the frames that can be read, whether the file is cut)."""
    reader = SegmentReader(io.BytesIO(content), "f")
    return list(reader.frames()), reader.cut


WHOLE, ENDS = written(FRAMES)


def test_a_file_that_is_cut_anywhere_has_all_frames_that_were_written_whole() -> None:
    for length in range(len(MAGIC), len(WHOLE)):
        frames, cut = read(WHOLE[:length])
        assert len(frames) == sum(end <= length for end in ENDS)
        assert cut == (length not in (len(MAGIC), *ENDS))


def test_a_flipped_bit_is_found_and_what_stands_before_it_is_used() -> None:
    random = Random(1)
    for _ in range(300):
        place = random.randrange(len(MAGIC), len(WHOLE))
        spoilt = bytearray(WHOLE)
        spoilt[place] ^= 1 << random.randrange(8)
        reader = SegmentReader(io.BytesIO(bytes(spoilt)), "f")
        found = 0
        try:
            for _frame in reader.frames():
                found += 1
        except UnusableRecording as error:
            assert str(error).startswith(f"f: frame {found + 1} is damaged: ")
        else:
            assert reader.cut  # a length that reaches beyond the end
        assert found == sum(end <= place for end in ENDS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "f: an empty file"),
        (b"apiVersion: v1\nkind: List\nitems: []", "f: no recording of policyengine"),
        (b"\x7fELF" * 100, "f: no recording of policyengine"),
        (MAGIC[:-2] + b"\x1b[31m\n", "f: no recording of policyengine"),
        (MAGIC[:10], "f: its beginning was not written whole"),
        (MAGIC[:-1], "f: its beginning was not written whole"),
        (MAGIC[:-2] + b"7\n", "f: a recording of version 7; this program reads version 1"),
        (MAGIC[:-2] + b"123\n", "f: a recording of version 123; this program reads version 1"),
    ],
)
def test_what_is_no_recording_is_told_what_it_is(content: bytes, message: str) -> None:
    with pytest.raises(UnusableRecording) as told:
        read(content)
    assert str(told.value) == message


def test_a_frame_that_claims_to_be_huge_is_not_believed() -> None:
    with pytest.raises(UnusableRecording, match="its length cannot be"):
        read(MAGIC + struct.pack(">III", LARGEST + 1, 1, 0))
    with pytest.raises(UnusableRecording, match="its length cannot be"):
        read(MAGIC + struct.pack(">III", 1, LARGEST + 1, 0))


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for begin in (b"", MAGIC):
        try:
            read(begin + content)
        except UnusableRecording as error:
            assert str(error).startswith("f: ")
