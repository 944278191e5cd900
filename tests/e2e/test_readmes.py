"""What the pages of the examples tell a reader to type is typed: every command, in its block's order.

A block's sandbox runs until the block is over; `policyengine` runs in this process where it ends by itself. Only `pip
install` is left out, and with it the block that needs what it installs: nothing is installed by a test.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["safe", "pigeon", "congestion", "nodenumber", "framework"]
LONGEST = 60
"""Seconds that a command may take."""


def blocks(page: str) -> list[list[list[str]]]:
    """The commands of a page, block by block, as words."""
    text = (ROOT / "examples" / page / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"(?:^    .+\n)+", text, re.MULTILINE)
    return [[shlex.split(line) for line in block.splitlines() if line.strip()] for block in found]


COMMANDS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page))
    if block[0][:2] != ["pip", "install"] and block[0][:2] != ["policyengine", "run"]
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader stands: in the checkout, as far as paths go, and free to write."""
    for name in ("examples", "policies"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def running(words: list[str], folder: Path) -> Iterator[None]:
    """A sandbox, from its welcome on."""
    command = [sys.executable, "-m", "policyengine.commands.main", *words[1:]]
    with (folder / "sandbox.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": str(ROOT)})
        try:
            end = time.monotonic() + LONGEST
            while b"Ctrl-C" not in (said := (folder / "sandbox.log").read_bytes()):
                assert process.poll() is None and time.monotonic() < end, said.decode()
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(LONGEST)


def typed(words: list[str]) -> str:
    """What a command that ends by itself prints; it must succeed."""
    if words[0] == "policyengine":
        result = CliRunner().invoke(cli, words[1:])
        # What a scenario expects of its own policy need not come true under another one.
        assert result.exit_code == 0 or (words[1] == "simulate" and "--policy" in words), result.output
        return result.output
    if words[0] == "python":
        return scripted(words[1:])
    if (kubectl := shutil.which("kubectl")) is None:
        return ""  # the rest is still tried
    done = subprocess.run([kubectl, *words[1:]], capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def scripted(words: list[str]) -> str:
    """What a script prints; in this process, which has imported what it needs."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sys, "argv", words)
        patch.syspath_prepend(str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
    return printed.getvalue()


def walked(block: list[list[str]], folder: Path) -> list[str]:
    first, *rest = block
    if first[:2] != ["policyengine", "sandbox"]:
        return [typed(words) for words in block]
    with running(first, folder):
        return [typed(words) for words in rest]


def test_every_page_has_commands_and_each_begins_with_a_word_that_is_known() -> None:
    for page in PAGES:
        words = {words[0] for block in blocks(page) for words in block}
        assert "policyengine" in words and words <= {"policyengine", "kubectl", "python", "pip"}


@pytest.mark.parametrize("block", COMMANDS)
def test_the_commands_of_a_block_do_what_they_are_said_to(block: list[list[str]], folder: Path) -> None:
    said = walked(block, folder)
    for words, output in zip(block[-len(said) :], said, strict=True):
        if words[0] != "python":
            continue
        scenario = Path(words[2])
        assert output.splitlines()[0].split() == ["node", "pods", "load"]
        pods = dict(line.split()[:2] for line in output.splitlines()[1:] if "waits:" not in line)
        check(scenario, pods, output)
        for picture in words[4:]:
            assert Path(picture).read_text(encoding="utf-8").count('class="frame"') == len(pods)


def check(scenario: Path, pods: dict[str, str], output: str) -> None:
    """What the page says of the table."""
    waiting = re.findall(r"^(\S+) waits:", output, re.MULTILINE)
    match (scenario.parent.name, scenario.stem):
        case ("safe", _):
            assert pods["node-2"] == pods["node-7"] == "0" and sum(map(int, pods.values())) == 16
        case ("pigeon", _):
            assert sorted(pods.values())[:1] == ["0"] or not waiting  # packed
            assert not waiting and sum(map(int, pods.values())) == 30
        case ("congestion", _):
            assert pods == {"busy": "3", "jammed": "0", "quiet": "3"}
        case ("nodenumber", _):
            assert set(pods.values()) == {"1"}
        case ("deadlock", "off"):
            assert sorted(waiting) == ["blue-2", "red-2"]
        case ("deadlock", "on"):
            assert sorted(pods.values()) == ["1", "2"]
            assert {name.partition("-")[0] for name in waiting} in ({"red"}, {"blue"}) and len(waiting) == 3
        case ("annotation-gang", _):
            assert waiting == ["hourly"]
        case ("logging", _):
            log = Path("sandbox.log").read_text()
            assert log.count("trying default/pod-") >= 3 and log.count("is on node-") == 3
        case _:
            raise AssertionError(f"{scenario} is looked at by nobody")
