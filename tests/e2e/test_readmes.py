"""What the pages of the examples tell a reader to type is typed, in its order, and what they show is seen.

A sandbox, an extender and whatever else stays runs until its sitting is over; what ends by itself runs in this process.
`pip install` installs beside the sitting. Where there is no kubectl, what it would look at is left out.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path

import pytest
from aiohttp.test_utils import unused_port
from click.testing import CliRunner

from policyengine.commands.main import cli
from policyengine.simulator.real_server import ASSETS
from tests.e2e.pages import Typed, is_seen, sittings
from tests.waiting import asked_until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGES = sorted(page for page in EXAMPLES.rglob("README.md") if page.parent.name != "ci")
"""Those for CI have a test of their own."""
STAYS = re.compile(r"policyengine (sandbox|extender|rewards|annotate) |kube-scheduler ")
LOOKS = re.compile(r"kubectl (get|describe|logs|wait) |policyengine (explain|rewards --show)|curl ")
"""May be typed again until it shows what was coming."""
PORT = "8888"
LONGEST = 120.0
"""Seconds that a command may take."""
SITTINGS = [
    pytest.param(sitting, id=f"{page.parent.relative_to(EXAMPLES)}-{number}".replace("/", "-"))
    for page in PAGES
    for number, sitting in enumerate(sittings(page))
]


class Reader:
    """Stands in a copy of the checkout, as far as paths go, and is free to write."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, staying: ExitStack) -> None:
        self._folder, self._patch, self._staying = folder, patch, staying
        self._port = str(unused_port())
        for name in ("deploy", "examples", "policies"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "policyengine").write_text(
            f'#!/bin/sh\nPYTHONPATH="{ROOT}:$PYTHONPATH" exec {sys.executable} -m policyengine.commands.main "$@"\n'
        )
        (folder / "policyengine").chmod(0o755)
        patch.chdir(folder)
        patch.setenv("PWD", str(folder))
        path = [str(folder), os.environ["PATH"], os.environ.get(ASSETS, "")]
        patch.setenv("PATH", os.pathsep.join(filter(None, path)))

    def types(self, command: str, shown: str) -> None:
        """See to it that what is shown is seen."""
        command, shown = (text.replace(PORT, self._port) for text in (command, shown))
        if STAYS.match(command) and "--show" not in command:
            self._start(command, shown)
        elif LOOKS.match(command):
            asked_until(lambda output: is_seen(shown, output), lambda: self._output(command))
        else:
            output = self._output(command)
            assert is_seen(shown, output), f"{command}\n{output}"

    def _start(self, command: str, shown: str) -> None:
        log = self._folder / f"{len(list(self._folder.glob('*.log')))}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(["sh", "-c", f"exec {command}"], stdout=output, stderr=output)
        self._staying.enter_context(ended(process))

        def is_up(said: str) -> bool:
            assert process.poll() is None, said
            return is_seen(f"… {shown} …", said)

        asked_until(is_up, log.read_text)

    def _output(self, command: str) -> str:
        words = shlex.split(command, comments=True)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._patch.setenv(name, os.path.expandvars(value))
            return ""
        if words[:2] == ["pip", "install"]:
            return self._install(words[2])
        if re.search(r"[|><;&]", command) or words[0] not in ("policyengine", "python"):
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=LONGEST)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
        if words[0] == "policyengine":
            return called(words[1:])
        said = scripted(words[1:])
        assert all('class="frame"' in Path(word).read_text(encoding="utf-8") for word in words if word.endswith(".svg"))
        return said

    def _install(self, package: str) -> str:
        """Its module where Python finds it, with its entry point."""
        packages = self._folder / "packages"
        shutil.copytree(ROOT / package, packages, ignore=shutil.ignore_patterns("__pycache__"))
        text = (packages / "pyproject.toml").read_text(encoding="utf-8")
        [section] = re.findall(r"^\[project\.entry-points\.(.*?)(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE)
        about = packages / "package-0.1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: package\nVersion: 0.1.0\n")
        points = re.sub(r'^"(.*?)"\]', r"[\1]", section).replace('"', "")
        (about / "entry_points.txt").write_text(points)
        self._patch.setenv("PYTHONPATH", str(packages))
        return ""


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait(LONGEST)


def called(words: list[str]) -> str:
    """What the command prints; what a scenario expects of its own policy need not come true under another one."""
    result = CliRunner().invoke(cli, words)
    is_under_another = "--policy" in words and re.search("^failed ", result.output, re.MULTILINE)
    assert result.exit_code == 0 or is_under_another, result.output
    return result.output


def scripted(words: list[str]) -> str:
    """What a script prints; in this process, which has imported what it needs."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sys, "argv", words)
        patch.syspath_prepend(str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
    return printed.getvalue()


def able(sitting: list[Typed]) -> Iterator[Typed]:
    """What can be typed here; the rest is skipped where it makes no sense without a program that is not here."""
    for one in sitting:
        program = one.command.split()[0]
        if program not in ("kubectl", "curl", "kube-scheduler") or shutil.which(program) is not None:
            yield one
        elif program != "kubectl" or not LOOKS.match(one.command):
            pytest.skip(f"{program} is not on PATH" + f", nor in ${ASSETS}" * (program == "kube-scheduler"))


@pytest.mark.parametrize("sitting", SITTINGS)
def test_what_a_page_shows_is_seen(sitting: list[Typed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as staying:
        reader = Reader(tmp_path, monkeypatch, staying)
        for command, shown in able(sitting):
            reader.types(command, shown)


def test_every_page_has_something_to_type_and_all_of_it_is_shown_as_such() -> None:
    for page in PAGES:
        if not list(page.parent.glob("*/README.md")):
            assert sittings(page), page
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"^    (policyengine|python|kubectl|curl) ", text, re.MULTILINE), page


def test_the_mini_scheduler_has_seven_steps_with_a_page_in_two_languages() -> None:
    steps = sorted(path.parent for path in (EXAMPLES / "mini-scheduler").glob("*/scheduler.policy"))
    assert [step.name[:2] for step in steps] == [f"{number}-" for number in range(1, 8)]
    for page in ("README.md", "README.ja.md"):
        text = (EXAMPLES / "mini-scheduler" / page).read_text(encoding="utf-8")
        linked = [EXAMPLES / "mini-scheduler" / link for link in re.findall(r"\]\(([^)]+/README[^)]*)\)", text)]
        assert [link.parent for link in linked] == steps
        assert all(link.exists() for link in linked)


def test_a_page_in_japanese_has_the_same_to_type_and_to_see() -> None:
    pages = list(EXAMPLES.rglob("README.ja.md"))
    assert len(pages) == 8
    for page in pages:
        assert sittings(page) == sittings(page.with_name("README.md"))


def test_it_is_seen_where_a_page_shows_something_else() -> None:
    assert is_seen("a …  c", "a b\nc\n") and is_seen("", "anything")
    assert not is_seen("a", "b") and not is_seen("a …", "b a")
