"""Raw sockets on the other side: what a server may do between two bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http import keep_alive
from policyengine.kube.http.http_connection import Answer
from policyengine.kube.http.keep_alive import QUICK, Connections
from policyengine.kube.http.transport import ConnectionFailed

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def served(peer: Peer, limit: int = 4) -> AsyncIterator[Connections]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections = Connections(f"http://127.0.0.1:{port}", ssl_context=None, server_hostname=None, limit=limit)
    try:
        yield connections
    finally:
        await connections.close()
        server.close()


async def post(connections: Connections, body: bytes = b"{}", seconds: float | None = 5.0) -> Answer:
    return await connections.call("POST", "/x", {"Content-Type": "application/json"}, body, seconds)


async def request_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")).split()[1])
    return head, await reader.readexactly(length)


async def test_a_request_arrives_whole_and_its_answer_comes_back() -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request_of(reader))
        writer.write(OK)

    async with served(peer) as connections:
        answer = await post(connections, b'{"a":1}')
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (201, "application/json", b"{}")
    assert seen[0][0].startswith(b"POST /x HTTP/1.1\r\nHost: 127.0.0.1:") and seen[0][1] == b'{"a":1}'


async def test_the_same_connection_serves_one_call_after_the_other() -> None:
    opened = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while True:
            await request_of(reader)
            writer.write(OK)

    async with served(peer) as connections:
        for _ in range(20):
            await post(connections)
    assert opened == 1


async def test_no_more_connections_than_the_limit_and_nobody_waits_for_ever() -> None:
    now, most = 0, 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        while True:
            await request_of(reader)
            now, most = now + 1, max(most, now + 1)
            await asyncio.sleep(0.001)
            now -= 1
            writer.write(OK)

    async with served(peer, limit=3) as connections:
        answers = await asyncio.gather(*(post(connections) for _ in range(30)))
    assert len(answers) == 30 and most == 3


async def test_a_connection_that_the_server_ends_after_its_answer_is_not_used_again() -> None:
    opened = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await request_of(reader)
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    async with served(peer) as connections:
        assert [(await post(connections)).status for _ in range(3)] == [201, 201, 201]
    assert opened == 3


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    opened = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await request_of(reader)
        writer.write(OK)

    async with served(peer) as connections:
        await post(connections)
        for _ in range(1000):
            if not connections._idle[0].is_open:
                break
            await asyncio.sleep(0.001)
        await post(connections)
    assert opened == 2


async def get(connections: Connections, seconds: float | None = 5.0) -> Answer:
    return await connections.call("GET", "/x", {}, None, seconds)


def once_then(*ends: bytes) -> tuple[Peer, list[int]]:
    """A server that ends its first connections at their second request, after these bytes of an answer; and how many
    requests each connection brought."""
    served: list[int] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at = len(served)
        served.append(0)
        while True:
            await reader.readuntil(b"\r\n\r\n")
            served[at] += 1
            if at < len(ends) and served[at] == 2:
                writer.write(ends[at])
                return
            writer.write(OK)

    return peer, served


async def test_a_get_whose_kept_connection_ends_before_the_answer_is_asked_again_on_another() -> None:
    peer, served_ = once_then(b"")
    async with served(peer) as connections:
        await get(connections)
        assert (await get(connections)).status == 201
    assert served_ == [2, 1]


async def test_a_get_is_asked_again_however_many_kept_connections_end() -> None:
    peer, served_ = once_then(b"", b"", b"")
    async with served(peer) as connections:
        await asyncio.gather(*(get(connections) for _ in range(3)))
        assert (await get(connections)).status == 201
    assert sorted(served_) == [1, 2, 2, 2]


async def test_a_get_whose_answer_has_begun_is_not_asked_again() -> None:
    peer, served_ = once_then(OK[:1])
    async with served(peer) as connections:
        await get(connections)
        with pytest.raises(ConnectionFailed) as failed:
            await get(connections)
    assert failed.value.sent and served_ == [2]


async def test_a_get_on_a_connection_of_its_own_is_not_asked_again() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        opened.append(1)

    opened: list[int] = []
    async with served(peer) as connections:
        with pytest.raises(ConnectionFailed):
            await get(connections)
    assert opened == [1]


async def test_nothing_but_a_get_is_asked_again() -> None:
    peer, served_ = once_then(b"")
    async with served(peer) as connections:
        await get(connections)
        for method in ("PUT", "PATCH", "DELETE", "POST"):
            served_[0] = 1
            with pytest.raises(ConnectionFailed) as failed:
                await connections.call(method, "/x", {}, None, 5.0)
            assert failed.value.sent and len(served_) == 1
            served_.clear()
            await get(connections)


async def test_a_get_is_asked_again_within_its_time() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            asked += 1
            if asked == 1:
                writer.write(OK)
            elif asked == 2:
                await asyncio.sleep(0.2)
                return
        await asyncio.sleep(60)

    asked = 0
    async with served(peer) as connections:
        await get(connections)
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionFailed, match="no answer in time"):
            await get(connections, seconds=0.4)
        assert asyncio.get_running_loop().time() - began < 0.6 and asked == 3


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_request_that_is_given_up_is_not_delivered_by_the_kernel_later(cancelled: bool) -> None:
    """Its connection is reset, so that nothing of it is left in a socket."""
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        try:
            ended.set_result(f"closed in order: {await reader.read()!r}")
        except ConnectionResetError:
            ended.set_result("reset")

    async with served(peer) as connections:
        with pytest.raises(TimeoutError if cancelled else ConnectionFailed):
            async with asyncio.timeout(0.1 if cancelled else None):
                await post(connections, seconds=None if cancelled else 0.1)
        assert await ended == "reset"


async def test_silence_leaves_the_outcome_open_and_the_late_answer_reaches_nobody() -> None:
    calls = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        number = calls
        await request_of(reader)
        if number == 1:
            await asyncio.sleep(0.1)
        writer.write(OK.replace(b"{}", b"%d " % number))

    async with served(peer, limit=1) as connections:
        with pytest.raises(ConnectionFailed, match="no answer in time") as caught:
            await post(connections, seconds=0.05)
        assert caught.value.sent
        assert (await post(connections)).body == b"2 "


async def test_a_call_that_is_cancelled_frees_its_place() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, body = await request_of(reader)
        if body == b"slow":
            await asyncio.sleep(10)
        writer.write(OK)

    async with served(peer, limit=1) as connections:
        slow = asyncio.create_task(post(connections, b"slow"))
        queued = asyncio.create_task(post(connections))
        await asyncio.sleep(0.02)
        slow.cancel()
        assert (await queued).status == 201


@pytest.mark.parametrize(
    "answer",
    [b"garbage\r\n\r\n", OK[:30], b"", OK[:-1]],
    ids=["not HTTP", "half a head", "nothing", "half a body"],
)
async def test_an_answer_that_is_none_leaves_the_outcome_open(answer: bytes) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(answer)

    async with served(peer) as connections:
        with pytest.raises(ConnectionFailed) as caught:
            await post(connections)
    assert caught.value.sent


async def test_an_interim_answer_is_passed_over() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK)

    async with served(peer) as connections:
        assert (await post(connections)).status == 201


async def test_bytes_nobody_asked_for_end_the_connection() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(OK + OK)

    async with served(peer) as connections:
        assert (await post(connections)).body == b"{}"
        assert not connections._idle or not connections._idle[0].is_open


@pytest.fixture(autouse=True)
def every_server_is_swift(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is posted together is sent together, however busy the machine is."""
    monkeypatch.setattr(keep_alive, "SWIFT", 10.0)


Outcomes = dict[int, int | ConnectionFailed]


async def post_all(connections: Connections, bodies: list[bytes], seconds: float = 5.0) -> Outcomes:
    """Place -> status, or why there is none."""
    told: Outcomes = {}

    def tell(at: int, outcome: Answer | ConnectionFailed) -> None:
        assert at not in told
        told[at] = outcome if isinstance(outcome, ConnectionFailed) else outcome.status

    headers = {"Content-Type": "application/json"}
    await connections.post_all([("/x", body) for body in bodies], headers, seconds, None, tell)
    return told


def answer_with(body: bytes) -> bytes:
    """The status that the body names; it may ask for more: `close` ends the connection after it."""
    ending = b"Connection: close\r\n" if b"close" in body else b""
    return b"HTTP/1.1 %b Whatever\r\n%bContent-Length: 0\r\n\r\n" % (body[:3], ending)


async def test_what_is_posted_together_comes_in_one_piece_and_is_answered_in_order() -> None:
    arrivals: list[int] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            bodies = [part.split(b"\r\n\r\n")[1] for part in data.split(b"POST ")[1:]]
            arrivals.append(len(bodies))
            for body in bodies:
                writer.write(answer_with(body))
                await writer.drain()

    async with served(peer) as connections:
        await post(connections, b"201")  # how quick the server is, is known from here on
        told = await post_all(connections, [b"201", b"409", b"503", b"201"])
    assert told == {0: 201, 1: 409, 2: 503, 3: 201}
    assert arrivals == [1, 4]


async def test_a_slow_server_has_a_connection_for_each() -> None:
    now, most = 0, 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        while True:
            _, body = await request_of(reader)
            now, most = now + 1, max(most, now + 1)
            await asyncio.sleep(2 * QUICK)
            now -= 1
            writer.write(answer_with(body))

    async with served(peer, limit=8) as connections:
        for _ in range(3):
            assert set((await post_all(connections, [b"201"] * 6)).values()) == {201}
    assert most == 6


@pytest.mark.parametrize(("swift", "side_by_side"), [(10.0, 1), (0.0, 6)])
async def test_calls_share_a_connection_only_with_a_swift_server(
    swift: float, side_by_side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_alive, "SWIFT", swift)
    seen = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        while True:
            _, body = await request_of(reader)
            writer.write(answer_with(body))

    async with served(peer, limit=8) as connections:
        await post(connections, b"201")  # what is not known yet counts as slow
        assert await post_all(connections, [b"201"] * 6) == dict.fromkeys(range(6), 201)
    assert seen == side_by_side


async def test_a_connection_that_ends_early_leaves_the_rest_open() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await request_of(reader)
            writer.write(answer_with(body))
            if b"close" in body:
                return

    async with served(peer) as connections:
        await post(connections, b"201")
        told = await post_all(connections, [b"201", b"201 close", b"201", b"201"])
        assert (told[0], told[1]) == (201, 201)
        for at in (2, 3):
            failure = told[at]
            assert isinstance(failure, ConnectionFailed) and failure.sent
        assert await post_all(connections, [b"201"] * 2) == {0: 201, 1: 201}


async def test_silence_leaves_open_only_what_was_not_answered() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await request_of(reader)
            if body == b"never":
                await asyncio.sleep(10)
            writer.write(answer_with(body))

    async with served(peer) as connections:
        await post(connections, b"201")
        told = await post_all(connections, [b"201", b"never", b"201"], seconds=0.1)
    assert told[0] == 201
    assert all(isinstance(told[at], ConnectionFailed) for at in (1, 2))


async def test_nothing_is_sent_of_what_may_not_be() -> None:
    seen = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        while True:
            await request_of(reader)
            seen += 1
            writer.write(OK)

    def refuse() -> None:
        raise ConnectionFailed("not now", sent=False)

    told: list[tuple[int, object]] = []
    async with served(peer) as connections:
        await connections.post_all(
            [("/x", b"{}")] * 12, {}, 5.0, refuse, lambda at, outcome: told.append((at, str(outcome)))
        )
        assert (await post(connections)).status == 201
    assert sorted(told) == [(at, "not now") for at in range(12)]
    assert seen == 1


@settings(max_examples=25, deadline=None)
@given(
    statuses=st.lists(st.integers(200, 599), min_size=1, max_size=30),
    cut=st.integers(1, 200),
    limit=st.integers(1, 3),
)
def test_together_or_one_by_one_each_has_the_same_answer(statuses: list[int], cut: int, limit: int) -> None:
    bodies = [b"%d" % status for status in statuses if status not in (204, 304)]

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rest = b""
        while True:
            _, body = await request_of(reader)
            rest += answer_with(body)
            while rest:
                writer.write(rest[:cut])
                rest = rest[cut:]
                await writer.drain()

    async def scenario() -> tuple[list[int], Outcomes, Outcomes]:
        async with served(peer, limit) as connections:
            alone = [(await post(connections, body)).status for body in bodies]
            return alone, await post_all(connections, bodies), await post_all(connections, bodies)

    alone, *together = asyncio.run(scenario())
    assert together == [dict(enumerate(alone))] * 2


chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


@settings(max_examples=40, deadline=None)
@given(parts=chunks, cuts=st.lists(st.integers(1, 60), max_size=8), chunked=st.booleans())
def test_an_answer_is_the_same_however_it_is_cut(parts: list[bytes], cuts: list[int], chunked: bool) -> None:
    body = b"".join(parts)
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    sent = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n" if chunked else body
    whole = b"HTTP/1.1 409 Conflict\r\nretry-after: 7\r\n" + framing + b"\r\n\r\n" + sent

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        rest = whole
        for cut in cuts:
            writer.write(rest[:cut])
            rest = rest[cut:]
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(rest)

    async def scenario() -> Answer:
        async with served(peer) as connections:
            return await post(connections)

    answer = asyncio.run(scenario())
    assert (answer.status, answer.headers["Retry-After"], answer.body) == (409, "7", body)
