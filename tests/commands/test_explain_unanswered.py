"""`explain` of a cluster whose API server refuses, is none, or says nothing: one sentence with the next step."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from policyengine.kube import scheduler_pages
from policyengine.simulator import sandbox
from tests.commands.process import Ended, kubectl_policyengine, policyengine


@contextmanager
def answers(status: int, body: str) -> Iterator[str]:
    """A server that has the same answer to everything; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, address: object) -> None:
            """A caller that hangs up is none: its traceback would stand among what the command says."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def kubeconfig(folder: Path, address: str) -> Path:
    path = folder / "config"
    path.write_text(json.dumps(sandbox.kubeconfig(address)), encoding="utf-8")
    return path


def status(code: int, reason: str, message: str) -> str:
    about = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return json.dumps({**about, "message": message, "reason": reason, "code": code})


def told(ended: Ended) -> str:
    """The one sentence."""
    assert ended.out == ""
    (line,) = ended.err.splitlines()
    return line


MAY_NOT = 'nodes is forbidden: User "ann" cannot list resource "nodes"'
NONE = "is it the address of one? {config} names it"
REFUSALS = [
    (401, status(401, "Unauthorized", "Unauthorized"), 2, "refuses the credentials of {config}: Unauthorized; log in "),
    (403, status(403, "Forbidden", MAY_NOT), 2, f"refuses to list nodes: {MAY_NOT}; have a role that may list them "),
    (404, "404 page not found\n", 3, f"does not answer as an API server: 404 page not found; {NONE}"),
    (404, "", 3, f"does not answer as an API server: HTTP status 404; {NONE}"),
    (502, "<html>\n<h1>Bad Gateway", 3, f"does not answer as an API server: <html>; {NONE}"),
    (200, "<html>Log in", 3, NONE),
    (200, "{}", 3, NONE),
]


@pytest.mark.parametrize("arguments", [("web",), ("web", "--alone")], ids=["asked of the scheduler", "of the objects"])
@pytest.mark.parametrize(("code", "body", "exit_code", "said"), REFUSALS)
def test_what_an_api_server_does_not_give_is_told_in_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], code: int, body: str, exit_code: int, said: str
) -> None:
    with answers(code, body) as address:
        config = kubeconfig(tmp_path, address)
        ended = policyengine("explain", *arguments, "--kubeconfig", config)
    line = told(ended)
    assert ended.code == exit_code
    assert line.startswith("error: ")
    assert f"`{address}`" in line
    assert said.format(config=config) in line


def test_a_refused_connection_is_told_with_the_address_and_where_it_stands(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        config = kubeconfig(tmp_path, address)
        ended = policyengine("explain", "web", "--kubeconfig", config)
        alone = policyengine("explain", "--alone", "--kubeconfig", config)
        queue = kubectl_policyengine("queue", "--kubeconfig", config)
    assert (ended.code, alone.code, queue.code) == (3, 3, 3)
    for one in (ended, queue):
        assert told(one).startswith("error: the API server does not answer: ")
        assert told(one).endswith(f"; is it up, and is `{address}` of {config} its address?")
    assert told(alone).startswith(f"error: cannot reach the API server `{address}` ({config}): ")
    assert told(alone).endswith("; is it up, and is that its address?")


def test_who_accepts_and_says_nothing_is_given_up_after_one_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_pages, "TIMEOUT", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        config = kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        ended = policyengine("explain", "web", "--kubeconfig", config)
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert ended.code == 3
    assert told(ended).startswith("error: the API server does not answer: no answer in time; is it up, ")


def test_credentials_that_are_refused_are_no_missing_role(tmp_path: Path) -> None:
    with answers(401, status(401, "Unauthorized", "Unauthorized")) as address:
        ended = kubectl_policyengine("queue", "--kubeconfig", kubeconfig(tmp_path, address))
    assert ended.code == 2
    assert told(ended) == "error: the API server refuses the credentials: Unauthorized; log in again"
