"""What a process under measurement said before it ended is told, whatever its log looks like."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.processes import ChildFailed, program

PLAIN = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
RuntimeError: no luck
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "a.py", line 1, in <module>
    | RuntimeError: no luck
    +------------------------------------
"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (PLAIN, "RuntimeError: no luck"),
        (GROUP, "RuntimeError: no luck"),
        (PLAIN + "and then it ended\n", "RuntimeError: no luck"),
        ("E1122 the lease was lost\n", "E1122 the lease was lost"),
        ("", "without a word"),
    ],
)
async def test_the_last_error_is_told_else_the_last_line(log: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "said").write_text(log)
    async with program(["sh", "-c", f"cat {tmp_path}/said >&2"], tmp_path) as child:
        while child.running:  # noqa: ASYNC110  (polled as a measurement does)
            await asyncio.sleep(0.01)
        assert child.last_words() == words


async def test_a_program_that_cannot_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed, match="cannot start `/nowhere/scheduler`"):
        async with program(["/nowhere/scheduler"], tmp_path):
            pytest.fail("it cannot have started")


async def test_a_line_may_be_longer_than_what_a_pipe_buffers(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(json.dumps({"latencies": "x" * 200_000}))
    async with program(["cat", str(tmp_path / "said")], tmp_path, asyncio.subprocess.PIPE) as child:
        assert len((await child.line(10.0))["latencies"]) == 200_000
