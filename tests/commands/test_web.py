"""`policyengine web`: what cannot be shown is said before anything is served, and Ctrl-C ends it."""

import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.commands.process import policyengine, running
from tests.recording.recordings import Recorded

DUMP = """
{"nodes": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}],
 "pending": [{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}},
             {"metadata": {"name": "q"}, "spec": {"nodeName": "", "containers": [
               {"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}]}
"""


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        (("--recording", "nothing"), 2, "nothing"),
        (("--recording", "cluster.json"), 2, "no recording"),
        (("--cluster", "nothing.json"), 2, "cannot read `nothing.json`"),
        (("--cluster", "old.json"), 2, "old.json"),
        (("--cluster", "cluster.json", "--recording", "x"), 2, "one thing"),
        (("--kubeconfig", "nothing"), 2, "does not exist"),
        (("--port", "70000"), 2, "70000"),
    ],
)
def test_what_cannot_be_shown_is_said(given: tuple[str, ...], code: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(DUMP)
    (tmp_path / "old.json").write_text('{"apiVersion": "v0", "kind": "Snapshot", "items": 3}')
    ended = policyengine("web", *given, cwd=tmp_path)
    assert ended.code == code and told in ended.err, ended.err
    assert "Traceback" not in ended.err


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(DUMP)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = policyengine("web", "--cluster", "cluster.json", "--port", port, cwd=tmp_path)
    assert (ended.code, f"port {port}" in ended.err, "--port" in ended.err) == (2, True, True)


@pytest.mark.parametrize("what", ["--cluster", "--recording"])
def test_pages_are_served_until_ctrl_c(what: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(DUMP)
    one = Recorded(tmp_path / "recording")
    one.play(0, 5, one.write)
    one.close()
    given = {"--cluster": "cluster.json", "--recording": "recording"}[what]
    with running("web", what, given, "--port", "0", cwd=tmp_path) as child:
        assert child.stdout is not None
        found = re.search(r"look at (http://127\.0\.0\.1:\d+/)", child.stdout.readline())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=60) as answer:
            text = answer.read().decode()
        wanted = "what the scheduler would make of them" if what == "--cluster" else 'type="range"'
        assert wanted in text
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
