"""The API server as a Transport: the client's requests go straight into the handler, with no socket between.

Time-outs and everything else run on the handler's clock, so a whole client and server share one virtual time.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import parse_qsl

from policyengine.kube.http.client import ConnectionFailed, TimedOut, lines_of
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import ConnectionDropped, Request, Response, User, within


def _failed(dropped: ConnectionDropped, began: bool = True) -> ConnectionFailed:
    return ConnectionFailed(str(dropped), sent=dropped.reached, began=began)


class MemoryResponse:
    """An answer of the handler, as `kube.http.client.Response` wants it."""

    def __init__(self, response: Response) -> None:
        self._body = response.body
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """The whole body."""
        if isinstance(self._body, bytes):
            return self._body
        try:
            return b"".join([chunk async for chunk in self._body])
        except ConnectionDropped as dropped:
            raise _failed(dropped) from dropped

    def lines(self) -> AsyncIterator[list[bytes]]:
        """The lines that came together, at least one, without line ends; an unfinished last line comes as it is."""
        return lines_of(self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._body, bytes):
            yield self._body
            return
        try:
            async for chunk in self._body:
                yield chunk
        except ConnectionDropped as dropped:
            raise _failed(dropped) from dropped

    async def close(self) -> None:
        """Stop a watch."""
        closer = getattr(self._body, "aclose", None)
        if closer is not None:
            await closer()


class MemoryTransport:
    """A client's way into an API server in the same process; `user` None lets the headers say who asks."""

    def __init__(self, api: ApiServer, *, user: User | None = None, user_agent: str = "policyengine") -> None:
        self._api = api
        self._user = user
        self._user_agent = user_agent

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the protocol's own name: it bounds the exchange)
        before: Callable[[], None] | None = None,
    ) -> MemoryResponse:
        """Answer one request; raises ConnectionFailed for an injected drop or a time-out."""
        if before is not None:
            before()
        bare, _, inline = path.partition("?")
        asked = {**dict(parse_qsl(inline, keep_blank_values=True)), **(query or {})}
        given = {name.lower(): value for name, value in (headers or {}).items()}
        given.setdefault("user-agent", self._user_agent)
        request = Request(method, bare, asked, given, body or b"", self._user)
        try:
            if timeout is None or not self._api.is_slow:
                return MemoryResponse(await self._api.handle(request))
            answer = await within(self._api.clock, timeout, self._api.handle(request))
        except ConnectionDropped as dropped:
            raise _failed(dropped, began=False) from dropped
        if answer is None:
            raise TimedOut(f"no answer within {timeout:g} s", sent=True)
        return MemoryResponse(answer)

    async def close(self) -> None:
        """Nothing to close."""
