"""Raw sockets on the other side of an answer that is read while it arrives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http import http_stream
from policyengine.kube.http.http_stream import AHEAD, HttpStream
from policyengine.kube.http.keep_alive import Connections
from policyengine.kube.http.transport import ConnectionFailed

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


@asynccontextmanager
async def answered(pieces: list[bytes], *, stays: bool = False) -> AsyncIterator[HttpStream]:
    """What the server writes, piece by piece; then it closes, unless it stays."""
    over = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"GET /x HTTP/1.1\r\nHost: ") and b"Content-Length" not in head
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if stays:
                await over.wait()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(peer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connections = Connections(address, ssl_context=None, server_hostname=None, limit=1)
    try:
        yield await connections.stream("GET", "/x", {})
    finally:
        over.set()
        await connections.close()
        assert not connections._streams
        server.close()


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


parts = st.lists(st.binary(min_size=1, max_size=30) | st.sampled_from([b"\n", b"a\nb", b"\n\n"]), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    parts=parts, sizes=st.lists(st.integers(1, 60), max_size=8), framing=st.sampled_from(["chunks", "length", "end"])
)
def test_a_body_is_the_same_however_it_is_cut(parts: list[bytes], sizes: list[int], framing: str) -> None:
    body = b"".join(parts)
    if framing == "chunks":
        sent = CHUNKED + b"".join(map(chunk, parts)) + b"0\r\n\r\n"
    elif framing == "length":
        sent = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    else:
        sent = b"HTTP/1.1 200 OK\r\n\r\n" + body

    async def scenario() -> tuple[bytes, list[bytes]]:
        stays = framing != "end"
        async with answered(cut(sent, sizes), stays=stays) as stream:
            whole = await stream.read()
        async with answered(cut(sent, sizes), stays=stays) as stream:
            return whole, [line async for line in stream.lines()]

    whole, lines = asyncio.run(scenario())
    assert whole == body
    *ended, rest = body.split(b"\n")
    assert lines == [*ended, *([rest] if rest else [])]


@settings(max_examples=40, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=6), missing=st.integers(1, 5)
)
def test_an_answer_that_breaks_off_gives_its_whole_lines_and_then_fails(lines: list[bytes], missing: int) -> None:
    sent = CHUNKED + b"".join(chunk(line + b"\n") for line in lines) + b"0\r\n\r\n"

    async def scenario() -> list[bytes]:
        read = []
        async with answered([sent[:-missing]]) as stream:
            with pytest.raises(ConnectionFailed, match="the server closed the connection") as caught:
                async for line in stream.lines():
                    read.append(line)  # noqa: PERF401  (what came before it failed counts)
        assert caught.value.sent
        return read

    assert asyncio.run(scenario()) == lines


async def test_status_and_headers_are_there_before_the_body_and_an_interim_answer_is_passed_over() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    async with answered(
        [early, b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\nContent-Length: 2\r\n\r\n"], stays=True
    ) as stream:
        assert (stream.status, stream.headers) == (429, {"Retry-After": "7", "Content-Length": "2"})


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-", b"SSH-2.0-OpenSSH\r\n\r\n"])
async def test_an_answer_that_is_none_fails(answer: bytes) -> None:
    with pytest.raises(ConnectionFailed) as caught:
        async with answered([answer]):
            pass
    assert caught.value.sent


async def test_what_the_reader_does_not_take_stays_in_the_socket() -> None:
    line = b"x" * 65_535 + b"\n"
    pieces = [CHUNKED, *([chunk(line)] * 200), b"0\r\n\r\n"]
    async with answered(pieces) as stream:
        await asyncio.sleep(0.2)
        assert stream._held <= 2 * AHEAD
        assert sum([len(lines) async for lines in stream.arrivals()]) == 200


async def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_stream, "MAX_LINE", 1000)
    async with answered([CHUNKED, chunk(b"x" * 2000)], stays=True) as stream:
        with pytest.raises(ConnectionFailed, match="a line is longer than 1000 bytes"):
            await anext(stream.lines())


async def test_whoever_gives_up_waiting_for_headers_closes_the_connection() -> None:
    closed = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        closed.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connections = Connections(address, ssl_context=None, server_hostname=None, limit=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connections.stream("GET", "/x", {})
    async with asyncio.timeout(5):
        await closed.wait()
    await connections.close()
    server.close()
