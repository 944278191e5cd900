"""The files of a recording."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest

from policyengine.recording import directory
from policyengine.recording.directory import DirectoryInUse, Limits, RecordingDirectory, files
from policyengine.recording.segment import SegmentReader

ENTRY = msgspec.msgpack.encode([1.0, "Tick", {}])


def frames(path: Path) -> int:
    with path.open("rb") as file:
        return len(list(SegmentReader(file, path.name).frames()))


def test_a_file_is_due_to_end_when_it_is_large_or_old(tmp_path: Path) -> None:
    large = RecordingDirectory(tmp_path / "large", Limits(file_size=100, file_age=1e9))
    old = RecordingDirectory(tmp_path / "old", Limits(file_size=1 << 30, file_age=60.0))
    assert not large.is_due(0.0)  # there is none
    for one in (large, old):
        one.write([ENTRY], 10.0)
    assert not old.is_due(69.0)
    assert old.is_due(70.0)
    assert not large.is_due(1e6)
    while not large.is_due(11.0):
        large.write([ENTRY], 11.0)
    large.end_file()
    large.write([ENTRY], 12.0)
    assert [one.name for one in files(tmp_path / "large")] == ["000001.recording", "000002.recording"]


def test_the_oldest_files_go_when_all_together_are_too_large(tmp_path: Path) -> None:
    recording = RecordingDirectory(tmp_path, Limits(kept=150))
    for _ in range(8):
        recording.write([ENTRY], 0.0)
        recording.end_file()
    left = files(tmp_path)
    assert left[-1].name == "000008.recording"
    assert 1 < len(left) < 8
    assert sum(one.stat().st_size for one in left[:-1]) <= 150


def test_a_second_process_writes_elsewhere(tmp_path: Path) -> None:
    first = RecordingDirectory(tmp_path)
    with pytest.raises(DirectoryInUse, match="is being written by another process"):
        RecordingDirectory(tmp_path)
    first.close()
    again = RecordingDirectory(tmp_path)
    again.write([ENTRY], 0.0)
    again.close()


def test_a_lock_that_is_a_link_leaves_the_file_it_leads_to_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "lock").symlink_to(tmp_path / "mine")
    RecordingDirectory(tmp_path / "kept").close()
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_later_run_never_writes_into_an_earlier_file(tmp_path: Path) -> None:
    for _ in range(3):
        one = RecordingDirectory(tmp_path)
        one.write([ENTRY], 0.0)
        one.close()
    assert [frames(one) for one in files(tmp_path)] == [1, 1, 1]


def test_a_full_disk_leaves_whole_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = RecordingDirectory(tmp_path)
    recording.write([ENTRY], 0.0)
    opened = recording._file
    assert opened is not None

    class Full:
        def write(self, written: memoryview) -> int:
            if len(written) > 5:
                return opened.write(written[:5])
            raise OSError(errno.ENOSPC, "No space left on device")

        def truncate(self, size: int) -> None:
            opened.truncate(size)

    monkeypatch.setattr(recording, "_file", Full())
    with pytest.raises(OSError, match="No space left"):
        recording.write([ENTRY], 0.0)
    (path,) = files(tmp_path)
    assert frames(path) == 1
    assert path.stat().st_size == recording._size


def test_other_files_in_the_directory_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "notes.recording").write_text("x")
    (tmp_path / "000009.txt").write_text("x")
    recording = RecordingDirectory(tmp_path)
    recording.write([ENTRY], 0.0)
    assert [one.name for one in directory.files(tmp_path)] == ["000001.recording"]
