"""Who may ask a port: by client certificate or token; refused before the body, whatever the path looks like."""

import asyncio
import gzip
import shutil
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyengine.clock import SystemClock
from policyengine.kube.config.credentials import trusting
from policyengine.kube.http.client import Client
from policyengine.server import certificate
from policyengine.server.callers import PROBES, REVIEWS, AccessRefused, Handler, Reviewer
from policyengine.server.certificate import CertificateFiles, CertificateUnusable
from policyengine.server.listening import Bodies, BodyRefused, listening
from policyengine.server.webhook import serve
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.api_server.memory import MemoryTransport
from tests.server.extender.recorded import POLICY, serving
from tests.simulator.api_server.keys import Keys

Answer = tuple[int, str]


class Cast:
    """A port's certificate, the authority of its clients, and an authority that nobody believes."""

    def __init__(self, folder: Path) -> None:
        for name in ("ours", "strangers"):
            (folder / name).mkdir()
        self.ours, self.strangers = Keys(folder / "ours"), Keys(folder / "strangers")
        self.client_ca = folder / "client-ca.crt"
        shutil.copy(self.ours.folder / "ca.crt", self.client_ca)
        self.tls = CertificateFiles(*self.ours.sign("port", "/CN=127.0.0.1"), self.client_ca)

    def client(self, name: str = "", of: Keys | None = None) -> ssl.SSLContext:
        """How a client connects: with a certificate of this name, or without one."""
        context = trusting()
        if name:
            context.load_cert_chain(*(of or self.ours).sign(name.replace(":", "-"), f"/O=system/CN={name}"))
        return context


@pytest.fixture
def cast(tmp_path: Path) -> Cast:
    return Cast(tmp_path)


async def asked(port: int, path: str, context: ssl.SSLContext, body: bytes | None = None, **headers: str) -> Answer:
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            "GET" if body is None else "POST",
            f"https://127.0.0.1:{port}{path}",
            data=body,
            ssl=context,
            headers=headers,
        ) as response,
    ):
        return response.status, await response.text()


def extender(tls: CertificateFiles, *names: str) -> AbstractAsyncContextManager[int]:
    return serving(POLICY, tls=tls, client_names=names)


@asynccontextmanager
async def webhook(tls: CertificateFiles, *names: str) -> AsyncIterator[int]:
    async def prove(author: str, texts: object) -> None:
        raise AssertionError("no review was meant to get here")

    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(prove, "127.0.0.1", 0, tls, stop, names, started))
    yield await started
    stop.set()
    await task


@pytest.mark.parametrize(("server", "path"), [(extender, "/calm/filter"), (webhook, "/validate")])
async def test_only_a_caller_with_a_certificate_of_the_authority_and_a_name_of_those_given_is_answered(
    cast: Cast, server: Any, path: str
) -> None:
    async with server(cast.tls, "system:kube-scheduler") as port:
        assert await asked(port, "/healthz", cast.client()) == (200, "ok")
        assert await asked(port, path, cast.client(), b"{") == (401, "show a client certificate\n")
        refused = await asked(port, path, cast.client("kubelet"), b"{")
        assert refused == (403, "the client certificate of `kubelet` is none of those that may ask\n")
        assert (await asked(port, "/metrics", cast.client("kubelet")))[0] == 403
        with pytest.raises(aiohttp.ClientError):
            await asked(port, path, cast.client("system:kube-scheduler", cast.strangers), b"{")
        status, _ = await asked(port, path, cast.client("system:kube-scheduler"), b"{")
        assert status in (200, 400)
        assert (await asked(port, "/metrics", cast.client("system:kube-scheduler")))[0] == 200


async def test_a_refused_caller_is_answered_before_its_body_comes(cast: Cast) -> None:
    async with extender(cast.tls) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=cast.client(), server_hostname="")
        writer.write(b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n")
        assert b"401" in await asyncio.wait_for(reader.readline(), 60)
        writer.close()


async def test_an_authority_that_is_believed_no_more_is_out_for_new_connections_even_resumed_ones(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "LOOK_AGAIN", 0.02)
    old, new = cast.client("a"), cast.client("a", cast.strangers)
    async with extender(cast.tls) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=old, server_hostname="")
        writer.write(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200" in await reader.readline()
        assert not writer.get_extra_info("ssl_object").session.has_ticket
        shutil.copy(cast.strangers.folder / "ca.crt", cast.client_ca)
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await asked(port, "/version", old)
                except aiohttp.ClientError:
                    break
        assert (await asked(port, "/version", new))[0] == 200
        writer.close()


def test_client_authorities_that_are_none_are_said_to_be(cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "none").write_text("nothing")
    for path, why in ((tmp_path / "none", "not PEM"), (tmp_path / "away", "no such file or directory")):
        with pytest.raises(CertificateUnusable, match=rf"client authorities `{path}` cannot be used: {why}"):
            CertificateFiles(cast.ours.folder / "port.crt", cast.ours.folder / "port.key", path)


async def test_a_certificate_or_a_token_will_do_and_rights_are_asked_for_by_the_method(cast: Cast) -> None:
    users = {"good": User("monitor", ("system:masters",)), "poor": User("no\x1bbody", ("system:authenticated",))}
    reviewer = Reviewer(Client(MemoryTransport(ApiServer(SystemClock(), tokens=users), user=ADMIN)))
    application = web.Application()

    async def page(request: web.Request) -> web.Response:
        return web.Response(text="here")

    application.router.add_route("*", "/page", page)
    async with listening(application, "127.0.0.1:0", cast.tls, 8, 0.1, reviewer=reviewer) as port:
        assert await asked(port, "/page", cast.client("any")) == (200, "here")
        assert await asked(port, "/page", cast.client(), Authorization="Bearer good") == (200, "here")
        refused = await asked(port, "/page", cast.client(), b"", Authorization="Bearer poor")
        assert refused == (403, "`no\\x1bbody` may not post `/page`\n")
        assert await asked(port, "/page", cast.client()) == (401, "show a client certificate or a bearer token\n")


PIECES = "/ // /./ /../ %2f %2F %00 ; ? # : @ healthz /healthz /readyz debug /metrics filter %68 %ff { % \x80"
ABSOLUTE = ["", "", "", "http://a", "http://healthz", "//a", "*", "\\", " "]
TARGETS = st.builds(
    lambda where, path: where + "".join(path),
    st.sampled_from(ABSOLUTE),
    st.tuples(st.sampled_from(["/healthz", "/metrics", "/calm/filter", "/", ""]))
    | st.lists(st.sampled_from(PIECES.split(" ")), max_size=6),
)
METHODS = st.sampled_from(["GET", "HEAD", "POST"]) | st.sampled_from(
    ["OPTIONS", "PUT", "TRACE", "CONNECT", "PRI", "get", "X" * 40]
)
WHOLE = "HTTP/1.1\r\nHost: a\r\nConnection: close"
VERSIONS = st.just(WHOLE) | st.sampled_from(["HTTP/1.0", "HTTP/1.1", "HTTP/1.1\r\nHost:", WHOLE, "HTTP/2.0", "", "a"])
HEADERS = st.just("") | st.sampled_from(
    [
        "",
        "Host: healthz\r\n",
        "X-Forwarded-Uri: /healthz\r\n",
        "X-HTTP-Method-Override: GET\r\n",
        "Upgrade: h2c\r\n",
        "Expect: 100-continue\r\nContent-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Content-Encoding: gzip\r\nContent-Length: 3\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer\x00a\r\n",
        "Authorization: Bearer \xff\r\n",
    ]
)
BODIES = st.just("") | st.sampled_from(["", "a", "0\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"])


@example(method="CONNECT", target="", version="", headers="", body="")
@settings(max_examples=300)
@given(method=METHODS, target=TARGETS, version=VERSIONS, headers=HEADERS, body=BODIES)
def requests(
    runner: asyncio.Runner, port: int, *, method: str, target: str, version: str, headers: str, body: str
) -> None:
    async def shown() -> bytes:
        """The answer, until the server ends it or waits for more."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = b""
        with suppress(ConnectionError, TimeoutError):
            writer.write(f"{method} {target} {version}\r\n{headers}\r\n{body}".encode("latin-1"))
            while part := await asyncio.wait_for(reader.read(1 << 16), 0.1):
                found += part
        writer.close()
        return found.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")

    answer = runner.run(shown())
    assert b"secret" not in answer and b"Traceback" not in answer
    assert b" 500 " not in answer.partition(b"\r\n")[0]
    if b" 200 " in answer.partition(b"\r\n")[0]:
        assert answer.partition(b"\r\n\r\n")[2][:2] in (b"ok", b"")


async def secret(request: web.Request) -> web.Response:
    return web.Response(text="secret")


async def health(request: web.Request) -> web.Response:
    return web.Response(text="ok")


def reading() -> Handler:
    bodies = Bodies(100, 100)

    async def read(request: web.Request) -> web.Response:
        try:
            async with bodies.read(request):
                return web.Response(text="ok")
        except BodyRefused as error:
            return web.Response(status=error.status, text=str(error))

    return read


@pytest.mark.parametrize("is_open", [False, True])
def test_no_spelling_of_a_request_gets_past_the_door_or_into_the_log(
    is_open: bool, caplog: pytest.LogCaptureFixture
) -> None:
    page = reading() if is_open else secret
    application = web.Application()
    for path in PROBES:
        application.router.add_get(path, health)
    application.router.add_route("*", "/metrics", page)
    application.router.add_post("/{path:.+}", page)
    reviewer = Reviewer(Client(MemoryTransport(ApiServer(SystemClock()), user=ADMIN)))
    with asyncio.Runner() as runner:
        port = listening(application, "127.0.0.1:0", None, 64, 0.1, reviewer=None if is_open else reviewer)
        try:
            requests(runner, runner.run(port.__aenter__()))
        finally:
            runner.run(port.__aexit__(None, None, None))
    assert not [record for record in caplog.records if record.levelname == "ERROR"], caplog.text


async def test_tokens_that_are_made_up_take_few_connections_to_the_api_server() -> None:
    under_way, most = 0, 0

    class Slow(MemoryTransport):
        async def request(self, *what: Any, **how: Any) -> Any:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            return await super().request(*what, **how)

    reviewer = Reviewer(Client(Slow(ApiServer(SystemClock()), user=ADMIN)))
    asked = (reviewer.check(f"made-up-{number}", "get", "/metrics") for number in range(50))
    refused = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, AccessRefused) and one.status == 401 for one in refused)
    assert most == REVIEWS


async def test_a_body_that_breaks_off_or_is_packed_is_refused_without_unpacking_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = web.Application()
    application.router.add_post("/", reading())
    bomb = gzip.compress(bytes(1 << 24), 9)
    async with listening(application, "127.0.0.1:0", None, 8, 0.1) as port:
        url = f"http://127.0.0.1:{port}/"
        async with aiohttp.ClientSession() as session:
            began = time.process_time()
            async with session.post(url, data=bomb, headers={"Content-Encoding": "gzip"}) as response:
                assert (response.status, await response.text()) == (415, "the body is packed; send it as it is")
            assert time.process_time() - began < 0.5
        for sent in (b"Content-Length: 9\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n3\r\na"):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\n" + sent)
            await asyncio.sleep(0.05)
            writer.close()
        await asyncio.sleep(0.1)
    assert not caplog.records
