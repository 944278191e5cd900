"""Requests of any bytes to everything that listens: webhook, extender, and the scheduler's pages. See `guided`.

An input is a request line without its version, headers, an empty line and a body; the rest of the request is added, so
that most inputs are whole requests. Each is sent over loopback to a server of its own making in this process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import Problem
from policyengine.policy_compiler import compile_policy
from policyengine.server.extender.app import serve
from policyengine.server.listening import listening
from policyengine.server.webhook import application
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.fuzz.guided import Target
from tests.fuzz.readers import damaged
from tests.server.extender.recorded import POLICY
from tests.server.extender.test_verbs import ROOM, asking, pod
from tests.server.extender.test_verbs import node as sent_node
from tests.server.test_endpoints import LOCAL, PODS, site
from tests.server.test_webhook import BROKEN, FAILING, GOOD, config_map, review

Listener = Callable[[], AbstractAsyncContextManager[int]]
PATIENCE = 0.02
"""Seconds for an answer to what may be no whole request; its sender then ends the connection."""


@asynccontextmanager
async def webhook() -> AsyncIterator[int]:
    """It compiles in this process, without tests: a proof in another one bounds the time that those take."""

    async def prove(author: str, name: str, data: Mapping[str, str]) -> Problem | None:
        return compiled(data, is_tested=False).problem

    async with listening(application(prove), "127.0.0.1:0", None, 256, 0.1) as port:
        yield port


@asynccontextmanager
async def extender() -> AsyncIterator[int]:
    """Two policies; it watches a cluster of two nodes and a pod."""
    api = ApiServer(SystemClock())
    transport = MemoryTransport(api, user=ADMIN)
    for name in ("a", "b"):
        await create(transport, "/api/v1/nodes", node(name, "zone"))
    await create(transport, PODS, pod("p"))
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    profiles = [compile_policy(text) for text in (POLICY, ROOM)]
    client = Client(transport)
    task = asyncio.create_task(serve(profiles, "127.0.0.1", 0, SystemClock(), stop, client=client, started=started))
    yield await started
    stop.set()
    await task


@asynccontextmanager
async def endpoints() -> AsyncIterator[int]:
    """The pages of a scheduler that runs, to callers that show a token."""
    async with site(LOCAL.replace("}", ", debug: true}"), review=True) as at:
        await create(at.outside, PODS, pod("p"))
        yield urlsplit(at.url).port or 0


def _posts(*requests: tuple[str, bytes | object]) -> list[bytes]:
    bodies = (body if isinstance(body, bytes) else json.dumps(body).encode() for _, body in requests)
    return [f"POST {path}\n\n".encode() + body for (path, _), body in zip(requests, bodies, strict=True)]


_PAGES = ("metrics", "healthz", "livez", "readyz?verbose", "version", "configz", "debug/cache", "debug/cache/compare")
_VICTIMS = {"a": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 1}}
_BINDING = {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "a"}
LISTENERS: Mapping[str, tuple[Listener, list[bytes]]] = {
    "webhook": (
        webhook,
        [
            *_posts(
                *(("/validate?timeout=5s", review(config_map({"p.policy": text}))) for text in (GOOD, BROKEN, FAILING)),
                ("/validate", review(config_map({"p.policy": GOOD, "params.yaml": "a: 3"}), "UPDATE")),
                ("/validate", review({**config_map({}), "binaryData": {"q.policy": "cG9saWN56Q=="}})),
                ("/validate", review(config_map({"p.policy": GOOD}, **{"policyengine.io/mode": "canary"}))),
            ),
            b"GET /healthz\n\n",
            b"POST /validate\nContent-Length: 99\n\n{}",
            b"GET /metrics\nAccept: application/openmetrics-text; version=1.0.0\n\n",
        ],
    ),
    "extender": (
        extender,
        [
            *_posts(
                *((path, asking("a", "b")) for path in ("/calm/filter", "/calm/prioritize", "/room/filter")),
                ("/calm/filter", {"Pod": pod("p"), "Nodes": {"items": [sent_node("a", x="y"), sent_node("b")]}}),
                ("/room/preempt", {"Pod": pod("p"), "NodeNameToMetaVictims": _VICTIMS}),
                ("/room/preempt", {"Pod": pod("p"), "NodeNameToVictims": {"a": {"Pods": [pod("x")]}}}),
                ("/room/bind", _BINDING),
            ),
            b"GET /version\n\n",
            b"POST /calm/filter\nContent-Length: 99\n\n{}",
            b"GET /readyz\n\n",
        ],
    ),
    "endpoints": (
        endpoints,
        [
            *(f"GET /{page}\nAuthorization: Bearer good\n\n".encode() for page in (*_PAGES, "debug/queue")),
            b"GET /debug/pods/default/p\nAuthorization: Bearer good\nAccept-Encoding: gzip\n\n",
            b"GET /debug/pods/default/%0a%1b\nAuthorization: Bearer good\n\n",
            b"GET /metrics\nAuthorization: Basic Zm9v\n\n",
            b"HEAD /configz\nAuthorization: bearer poor\nConnection: keep-alive, upgrade\nUpgrade: websocket\n\n",
            b"POST /healthz\nTransfer-Encoding: chunked\nExpect: 100-continue\n\n3\r\nabc\r\n0\r\n\r\n",
        ],
    ),
}  # fmt: skip


def request_of(raw: bytes) -> bytes:
    """What is sent for an input."""
    head, _, body = raw.partition(b"\n\n")
    line, _, headers = head.partition(b"\n")
    ours = b"" if b"ncoding" in headers or b"Length" in headers else b"Content-Length: %d\r\n" % len(body)
    theirs = b"".join(one + b"\r\n" for one in headers.split(b"\n") if one)
    return b"%b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%b%b\r\n%b" % (line, ours, theirs, body)


class _Alarms(logging.Handler):
    """What must not be logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.raised: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep records of exceptions."""
        if record.exc_info:
            self.raised.append(self.format(record))


async def ask(port: int, request: bytes) -> bytes:
    """What is answered, until the connection ends or nothing comes for a while."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        writer.write(request)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(PATIENCE) as patience:
                while piece := await reader.read(65536):
                    answer += piece
                    patience.reschedule(asyncio.get_running_loop().time() + PATIENCE)
        return answer
    finally:
        writer.transport.abort()


@contextmanager
def target(name: str) -> Iterator[Target]:
    """A listener that runs while the block does, and requests to it."""
    listener, seeds = LISTENERS[name]
    alarms = _Alarms()
    logging.getLogger().addHandler(alarms)
    with asyncio.Runner() as runner:
        running = listener()
        port = runner.run(running.__aenter__())

        def take(raw: bytes) -> None:
            answer = runner.run(ask(port, request_of(raw)))
            assert not alarms.raised, alarms.raised
            assert not answer.startswith(b"HTTP/1.1 500"), answer
            assert b"Traceback" not in answer, answer

        try:
            yield Target(take, seeds, lambda raw, seed: damaged(raw.decode(errors="replace"), random.Random(seed)))
        finally:
            runner.run(running.__aexit__(None, None, None))
            logging.getLogger().removeHandler(alarms)
