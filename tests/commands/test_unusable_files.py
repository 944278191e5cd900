"""Every reader of a file from a user, given what is no such file: one line that names it, and exit code 2, at once."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.process import policyengine

ANNOTATE = ("annotate", "--prometheus", "http://127.0.0.1:1", "--prometheus-token-file")
READERS: dict[str, tuple[str, ...]] = {
    "lint.policy": ("lint",),
    "lint.yaml": ("lint",),
    "fmt.policy": ("fmt",),
    "test.policy": ("test",),
    "suite.test.yaml": ("test",),
    "scenario.yaml": ("simulate",),
    "dump.json": ("explain", "--cluster"),
    "convert.yaml": ("convert",),
    "convert.json": ("convert", "--to", "run"),
    "convert.policy": ("convert", "--to", "kube-scheduler"),
    "configuration.yaml": ("config", "--config"),
    "run.yaml": ("run", "--config"),
    "kubeconfig": ("run", "--kubeconfig"),
    "token": ANNOTATE,
    "webhook.pem": ("webhook", "--tls-cert-file"),
    "extender.pem": ("extender", "--policy", "policies/riya.policy", "--tls-cert-file"),
}
TEXTS = [name for name in READERS if not name.endswith(".pem") and name != "token"]
PATIENCE = 20
"""Seconds of the processor's time; a reader that hangs is interrupted."""

ANCHORS = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))
BOMB = f"a0: &a0 [{', '.join('x' * 10)}]\n{ANCHORS}\ncurrent-context: *a11\n"


@pytest.fixture(autouse=True)
def interrupted() -> Iterator[None]:
    def hangs(*_: object) -> None:
        raise TimeoutError("the reader hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refusal(reader: str, path: Path) -> str:
    ended = policyengine(*READERS[reader], path)
    assert ended.code == 2 and ended.out == "", ended
    lines = [line for line in ended.err.splitlines() if str(path) in line]
    assert len(lines) == 1, ended.err
    return lines[0]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _as_large_as_a_disk(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (_pipe, "it is a pipe"),
    "a device": (_device, "it is a device"),
    "as large as a disk": (_as_large_as_a_disk, "larger than "),
    "absent": (lambda path: None, ""),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_of_bounded_size_is_refused_unread(reader: str, kind: str, tmp_path: Path) -> None:
    make, told = KINDS[kind]
    make(tmp_path / reader)
    assert told in refusal(reader, tmp_path / reader)


@pytest.mark.parametrize("reader", TEXTS)
def test_bytes_that_are_no_text_are_refused(reader: str, tmp_path: Path) -> None:
    path = tmp_path / reader
    path.write_bytes(b"a: \xff\n")
    assert "is not UTF-8" in refusal(reader, path)


@pytest.mark.parametrize("reader", [name for name in TEXTS if not name.endswith(".policy")])
@pytest.mark.parametrize(
    "text", [BOMB, "[" * 100_000, '{"a":' * 100_000, "\0" * 1000, "a: !!python/object:os.system {}\n", "- &a [*a]\n"]
)
def test_yaml_and_json_that_expand_nest_or_mean_anything_are_refused(reader: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / reader
    path.write_text(text)
    refusal(reader, path)


@pytest.mark.parametrize("reader", ["lint.policy", "fmt.policy", "test.policy", "scenario.yaml", "kubeconfig"])
def test_a_name_longer_than_any_file_has_is_refused(reader: str, tmp_path: Path) -> None:
    refusal(reader, tmp_path / ("a" * 5000))


DIGITS = "9" * 6000
SCENARIO = "nodes: [{name: n, count: %s}]\npods: [{name: p, count: 1}]\n"
DUMP = '{"nodes": [{"metadata": {"name": "n", "generation": %s}}]}'
BURST = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\nclientConnection: {burst: %s}\n"


@pytest.mark.parametrize(
    ("reader", "text"), [("scenario.yaml", SCENARIO), ("dump.json", DUMP), ("configuration.yaml", BURST)]
)
def test_a_number_of_thousands_of_digits_is_refused(reader: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / reader
    for number in (DIGITS, "9" * 40, f"-{DIGITS}", f"{DIGITS}e9"):
        path.write_text(text.replace("%s", number))
        refusal(reader, path)


def test_a_control_character_in_the_name_of_an_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    for name in ("a\\u0000b", "a\\u001b[31mb", "a\\nb"):
        path.write_text('{"nodes": [{"metadata": {"name": "NAME"}}]}'.replace("NAME", name))
        assert "has a control character in its name" in refusal("dump.json", path)
    path.write_text('{"nodes": [{"metadata": {"name": "a", "labels": {"b": "\\ud800"}}}]}')
    assert "half a character" in refusal("dump.json", path)


def test_a_configuration_with_a_million_mistakes_tells_the_first_hundred(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    head = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"
    path.write_text(f"{head}policies: {{files: [{'1,' * 20_000}]}}\n")
    ended = policyengine("config", "--config", path)
    assert ended.code == 2 and len(ended.err.splitlines()) == 100


def test_a_folder_below_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.policy").write_text('policy "a" { scheduler "a" }')
    listed = os.scandir

    def scandir(path: Any = ".") -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    ended = policyengine("lint", tmp_path)
    assert ended.code == 2
    assert f"error: `{tmp_path}/closed` cannot be read: permission denied" in ended.err.splitlines()


def test_a_link_to_itself_beside_a_policy_is_no_matter_and_as_a_suites_policy_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "ok.policy").write_text('policy "p" { filter "f" { require node.ready else "is not ready" } }')
    (tmp_path / "loop.policy").symlink_to("loop.policy")
    assert policyengine("lint", tmp_path / "ok.policy").code == 0
    (tmp_path / "loop.test.yaml").write_text("tests: [{name: t, nodes: {a: {}}, pods: {p: {}}, expect: []}]")
    ended = policyengine("test", tmp_path / "loop.test.yaml")
    assert ended.code == 2 and "cannot be read: too many levels of symbolic links" in ended.err


@pytest.mark.parametrize("command", [("fmt",), ("lint", "--fix")])
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path, command: tuple[str, ...]) -> None:
    path, text = tmp_path / "p.policy", 'policy "p" { filter "f" { require !!node.ready else "is not ready yet" } }'
    path.write_text(text)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(text) // 2, hard))
    try:
        ended = policyengine(*command, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert ended.code == 2 and "cannot be written: file too large" in ended.err and "changed 1" not in ended.err
    assert path.read_text() == text and [one.name for one in tmp_path.iterdir()] == ["p.policy"]


def test_a_link_to_a_file_that_is_written_stays_one_and_rights_are_kept(tmp_path: Path) -> None:
    (tmp_path / "p.policy").write_text('policy  "p" {}')
    (tmp_path / "p.policy").chmod(0o640)
    (tmp_path / "link.policy").symlink_to("p.policy")
    assert policyengine("fmt", tmp_path / "link.policy").code == 0
    assert (tmp_path / "link.policy").is_symlink() and (tmp_path / "p.policy").read_text() == 'policy "p" {}\n'
    assert (tmp_path / "p.policy").stat().st_mode & 0o777 == 0o640
