"""`policyengine explain --live`: a timeline over loopback, and what is said where there is none."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from policyengine.commands.main import cli
from policyengine.server.debug import pod_timeline
from policyengine.server.managed_certificate import issue
from policyengine.simulator.sandbox import kubeconfig
from tests.commands.process import policyengine
from tests.scheduler.driver import Driver, node, pod


@contextmanager
def endpoints(
    status: int = 200, body: object = None, tls: tuple[Path, Path] | None = None, leads: bool = True
) -> Iterator[str]:
    """A server that answers as the scheduler's endpoints do, or with the answer given; gives its address. With a
    certificate and its key it wants the token `secret`."""
    driver = Driver()
    driver.see(node("n1", cpu="2"), pod("p", cpu="4"))
    driver.cycle()
    driver.see(pod("q").priority(1))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, _, _, namespace, name = self.path.split("/")
            answer: tuple[int, Any] = (status, body)
            if tls and self.headers["Authorization"] != "Bearer secret":
                answer = 401, "show a bearer token\n"
            elif body is None:
                try:
                    served_by = {"servedBy": {"identity": "here_1", "leads": leads}}
                    answer = 200, served_by | pod_timeline(driver.state, namespace, name)
                except KeyError:
                    answer = 404, f"no pod `{namespace}/{name}` waits or runs\n"
            raw = answer[1].encode() if isinstance(answer[1], str) else json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def live(address: str, name: str, *more: str) -> Result:
    return CliRunner().invoke(cli, ["explain", "--live", name, "--address", address, *more])


def test_the_story_is_told_line_by_line() -> None:
    with endpoints() as address:
        shown = live(address, "default/p")
        active = live(address, "default/q")
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("default/p  unschedulable; policy default ")
    assert "0/1 nodes are available: 1 Insufficient cpu." in shown.output
    told = [line.split()[2] for line in shown.output.splitlines() if "1970-" in line]
    assert told == ["queued", "attempted", "refused"]
    assert "by NodeResourcesFit" in shown.output
    assert "active, position 1 of 1" in active.output


def test_json_is_what_the_scheduler_answers() -> None:
    with endpoints() as address:
        found = json.loads(live(address, "default/p", "-o", "json").output)
    assert found["place"] == "unschedulable"
    assert found["story"][0]["what"] == "queued"


def outcome(address: str, name: str, *more: str | Path) -> tuple[int, str]:
    ended = policyengine("explain", "--live", name, "--address", address, *more)
    assert ended.out == ""
    return ended.code, ended.err.splitlines()[-1]


def test_what_goes_wrong_has_its_code_and_one_message(tmp_path: Path) -> None:
    with endpoints() as address:
        code, told = outcome(address, "default/absent")
        assert (code, told) == (2, f"Error: the scheduler at `{address}` knows no pod `default/absent`")
        assert outcome(address, "p")[0] == 2
        assert outcome(address, "default/p", "--kubeconfig", tmp_path / "config") == (
            2,
            f"Error: credentials of a kubeconfig are sent to an https address only, and `{address}` is none; give "
            "--address https://…, or leave out --kubeconfig",
        )
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        code, told = outcome(f"http://127.0.0.1:{closed.getsockname()[1]}", "default/p")
    assert code == 3
    assert told.startswith("error: no scheduler answers at")
    with endpoints(401, {}) as address:
        assert outcome(address, "default/p")[0] == 2
    with endpoints(404, "404: Not Found") as address:
        assert outcome(address, "default/p")[0] == 3
    with endpoints(200, {"else": 1}) as address:
        code, told = outcome(address, "default/p")
        assert (code, told) == (3, f"error: `{address}` does not answer as policyengine's endpoints do (status 200)")
    assert outcome("nowhere", "default/p") == (2, "Error: `nowhere` is no address such as http://127.0.0.1:10259")
    absent = tmp_path / "ca.crt"
    assert outcome("https://127.0.0.1:1", "default/p", "--certificate-authority", absent)[0] == 2


def test_a_standby_is_not_believed() -> None:
    with endpoints(leads=False) as address:
        code, told = outcome(address, "default/p")
    assert code == 3
    assert told.endswith("has just changed: `here_1` answers and does not lead; ask again")


def test_a_dump_or_a_pod_and_not_both() -> None:
    assert policyengine("explain").code == 2
    assert policyengine("explain", "--cluster", "x.json", "--live", "a/b").code == 2
    assert policyengine("explain", "--live", "a/b", "--pod", "a/b").code == 2


NAME = "policyengine.kube-system.svc"


def test_a_token_is_shown_to_https_whose_certificate_is_believed(tmp_path: Path) -> None:
    certificate, key, authority = (tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt"))
    issued = issue((NAME,), datetime.now(UTC))
    for path, content in ((certificate, issued.certificate), (key, issued.key), (authority, issued.authorities)):
        path.write_bytes(content)
    (tmp_path / "config").write_text(json.dumps(kubeconfig("https://127.0.0.1:1", "secret")), encoding="utf-8")
    believed = ("--certificate-authority", authority, "--tls-server-name", NAME)
    with endpoints(tls=(certificate, key)) as address:
        shown = policyengine(
            "explain", "--live", "default/p", "--address", address, "--kubeconfig", tmp_path / "config", *believed
        )
        assert shown.code == 0, shown.err
        assert "unschedulable" in shown.out
        code, told = outcome(address, "default/p", *believed)
        assert code == 2
        assert "refuses the credentials (401)" in told
        assert outcome(address, "default/p", "--kubeconfig", tmp_path / "config")[0] == 3
