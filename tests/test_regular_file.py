"""A file that a user names is read where it is a regular one within its bound; all else is said in a clause."""

from __future__ import annotations

import os
import socket
from io import BytesIO
from pathlib import Path

import pytest

from policyengine import regular_file

MOST = 1 << 20


def refusal(path: str | Path) -> str:
    with pytest.raises(OSError) as error:
        regular_file.read(path, MOST)
    return regular_file.reason(error.value)


def test_a_file_is_read_up_to_its_bound_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * MOST)
    assert regular_file.read(path, MOST) == b"x" * MOST
    path.write_bytes(b"x" * (MOST + 1))
    assert refusal(path) == "it is larger than 1 MiB"


def test_a_stream_is_read_up_to_its_bound_and_not_beyond() -> None:
    assert regular_file.read_stream(BytesIO(b"x" * MOST), MOST) == b"x" * MOST
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        regular_file.read_stream(BytesIO(b"x" * (MOST + 1)), MOST)


def test_what_is_no_file_is_told_by_its_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert refusal(tmp_path / "s") == "it is a socket; name a file"
    assert refusal(tmp_path / "pipe") == "it is a pipe; name a file"
    assert refusal("/dev/zero") == "it is a device; name a file"
    assert refusal(tmp_path) == "is a directory"
    assert refusal(tmp_path / "absent") == "no such file or directory"
    assert refusal(tmp_path / ("a" * 5000)) == "file name too long"
    for name in ("a\0b", "\ud800"):
        assert refusal(tmp_path / name) == "it is no file name"


def test_a_pipe_that_the_shell_opened_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"text")
    os.close(writing)
    try:
        assert regular_file.read(f"/dev/fd/{reading}", MOST) == b"text"
    finally:
        os.close(reading)


def test_a_name_that_is_none_is_no_file_and_no_folder(tmp_path: Path) -> None:
    for path in (tmp_path / ("a" * 5000), tmp_path / "a\0b", tmp_path / "absent"):
        assert not regular_file.is_file(path) and not regular_file.is_folder(path)
    assert regular_file.is_folder(tmp_path) and not regular_file.is_file(tmp_path)
