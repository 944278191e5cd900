"""The calls a scheduler makes, and the transport that carries them; an answer that is no success raises `ApiError`.

`kube` speaks only through `Transport`, so the same client runs over sockets (`kube.http.aiohttp_transport`) and in
memory, straight into the embedded API server's handler, on virtual time.

Rules of a transport:
1. An answer of any status is a `Response`; only a connection that failed raises, and then `ConnectionFailed`.
2. `ConnectionFailed.sent` is False only if the server cannot have seen the request. When in doubt it is True:
   a binding whose outcome is unknown keeps its reservation.
3. `request` returns when the headers are in. `timeout` bounds the whole exchange, the body included; a watch
   passes None and is timed by its reader.
4. `before` is called when nothing but the sending is left: there is a connection, and credentials. If it raises,
   nothing is sent and the exception is passed on.
5. Whoever asked for a response closes it; closing one whose body was read returns its connection.
6. A request refused for its credentials (401) is sent once more with fresh ones. An idempotent one (GET, PUT, DELETE)
   may be sent again if a reused connection ends before the first byte of an answer (RFC 9110 9.2.2): a lease that is
   replaced names the version it replaces, a pod that is deleted its UID. `before` is called again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from policyengine.cluster.kinds import PODS, Kind
from policyengine.kube.http.rate_limit import TokenBucket

REQUEST_TIMEOUT = 30.0
"""Seconds for one call; an API server ends its own calls after a minute."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
UNVALIDATED = {"fieldValidation": "Ignore"}
"""For objects whose form is fixed here: the server need not look for unknown fields, which costs it CPU
(https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation)."""


class ConnectionFailed(Exception):
    """The connection was refused, lost or too slow; carries no answer."""

    def __init__(self, message: str, *, sent: bool, began: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        """Whether the request may have reached the server: its outcome is then unknown."""
        self._began = began
        """Whether an answer had begun."""

    @property
    def is_away(self) -> bool:
        """Whether there was no server: no connection, or one that ended at once, as a load balancer without one does
        it."""
        return not self._began


class TimedOut(ConnectionFailed):
    """No answer in time."""

    @property
    def is_away(self) -> bool:
        """As for every failure; a server that takes long is there."""
        return not self.sent


class Response(Protocol):
    """An answer whose body has not been read yet."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; callers ask for `Content-Type` and `Retry-After` in this spelling."""

    async def read(self) -> bytes:
        """The whole body. Raises `ConnectionFailed` if it ends early."""

    def lines(self) -> AsyncIterator[list[bytes]]:
        """The body's lines without line ends; each list holds those that arrived together and is never empty.

        An unfinished last line comes as it is. Raises `ConnectionFailed` if the stream breaks.
        """

    async def close(self) -> None:
        """Give the connection up, or back if the body was read to its end."""


class Transport(Protocol):
    """Sends requests to one API server."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (bounds the exchange, the body included)
        before: Callable[[], None] | None = None,
    ) -> Response:
        """Send one request; `path` starts with `/` and is not yet percent-encoded. Raises `ConnectionFailed`."""

    async def close(self) -> None:
        """Close every connection."""


async def lines_of(chunks: AsyncIterator[bytes], longest: int | None = None) -> AsyncIterator[list[bytes]]:
    """Chunks cut into lines, as `Response.lines`. Raises `ConnectionFailed` for a line over `longest` bytes.

    `b"on"`, `b"e\\ntwo\\nth"`, `b"ree"` come out as `[b"one", b"two"]`, `[b"three"]`.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        if b"\n" in chunk:
            *whole, rest = b"".join([*parts, chunk]).split(b"\n")
            yield whole
            parts, size = [rest], len(rest)
        else:
            parts.append(chunk)
            size += len(chunk)
        if longest is not None and size > longest:
            raise ConnectionFailed(f"a line is longer than {longest} bytes", sent=True, began=True)
    if size:
        yield [b"".join(parts)]


class ApiError(Exception):
    """The API server's refusal: an HTTP status and the fields of its Status object."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float = 0.0, causes: Collection[str] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        """The reasons of the Status's causes, such as `NamespaceTerminating`."""
        self.retry_after = retry_after
        """Seconds the server asks to wait; 0 where it asks for none."""


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    """meta/v1 Status, as far as it is read."""

    reason: str = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


class _ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    resource_version: str = ""
    continue_: str = ""


class Page(msgspec.Struct):
    """One page of a list; the items are still JSON."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_status = msgspec.json.Decoder(_Status).decode
_decode_page = msgspec.json.Decoder(Page).decode
_encode = msgspec.json.Encoder().encode


class Client:
    """Calls to one API server. Every method raises `ApiError` for a refusal, `ConnectionFailed` for no answer."""

    def __init__(
        self, transport: Transport, request_timeout: float = REQUEST_TIMEOUT, limiter: TokenBucket | None = None
    ) -> None:
        """`request_timeout` bounds every call but watches, in seconds. With a `limiter` lists and watches wait for a
        token; whoever makes other calls takes one before (`RequestQueue`)."""
        self.limiter = limiter
        self._transport = transport
        self._request_timeout = request_timeout
        self._served: dict[Kind[Any], Kind[Any]] = {}

    async def throttle(self) -> None:
        """Wait for a token, if requests are limited."""
        if self.limiter is not None:
            await self.limiter.take()

    def served(self, resource: Kind[Any]) -> Kind[Any]:
        """The kind in the newest version that the last list found served; before any list, the newest there is."""
        return self._served.get(resource, resource)

    async def list_page(
        self,
        resource: Kind[Any],
        namespace: str = "",
        label_selector: str = "",
        continue_: str = "",
        limit: int = 0,
        field_selector: str = "",
    ) -> Page:
        """One page of a consistent list, in the newest version that the server serves (`served`); `field_selector`: in
        place of the kind's own."""
        query = _selectors(resource, label_selector) | {"limit": str(limit or resource.page)}
        if field_selector:
            query["fieldSelector"] = field_selector
        if continue_:
            query["continue"] = continue_
        return self._page(resource, await self._list(resource, namespace, query))

    async def list_node_pods(self, node: str) -> list[bytes]:
        """The pods on a node that have not ended, as JSON: a consistent list, which the API server answers from its
        index of pods by node."""
        query = {"fieldSelector": f"{PODS.field_selector},spec.nodeName={node}"}
        return [bytes(raw) for raw in self._page(PODS, await self.call("GET", PODS.path(), query=query)).items or ()]

    @staticmethod
    def _page(resource: Kind[Any], body: bytes) -> Page:
        try:
            return _decode_page(body)
        except msgspec.MsgspecError as error:
            raise ApiError(200, "Malformed", f"the list of {resource.plural} cannot be read: {error}") from error

    async def _list(self, resource: Kind[Any], namespace: str, query: Mapping[str, str]) -> bytes:
        """What is served is found by asking: a version may be served without the kind, and a list costs no right
        besides. The version that answered last goes first."""
        last = self.served(resource)
        others = [one for one in (resource, *resource.older) if one is not last]
        while True:
            await self.throttle()
            try:
                body = await self.call("GET", last.path(namespace), query=query)
                self._served[resource] = last
                return body
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND or not others:
                    raise
                last = others.pop(0)

    async def list_all(
        self, resource: Kind[Any], namespace: str = "", label_selector: str = ""
    ) -> AsyncIterator[bytes]:
        """Each object as JSON, read page by page. Raises `ApiError`, `ConnectionFailed`."""
        token = ""
        while True:
            page = await self.list_page(resource, namespace, label_selector, token)
            for raw in page.items or ():
                yield bytes(raw)
            token = page.metadata.continue_
            if not token:
                return

    async def watch(
        self, resource: Kind[Any], version: str, seconds: int, namespace: str = "", label_selector: str = ""
    ) -> Response:
        """Open a watch that the server ends after about `seconds`; the caller reads and closes the response."""
        query = _selectors(resource, label_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        await self.throttle()
        response = await self._transport.request("GET", self.served(resource).path(namespace), query=query)
        if response.status != 200:
            raise await _error(response)
        return response

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | Sequence[object] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "",
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Any other request; the body of its answer. `content`: the form of `body`, by default JSON, of a PATCH a JSON
        merge patch; `seconds` bounds this call; `headers` are sent besides."""
        if body is not None:
            headers = {"Content-Type": content or (MERGE_PATCH if method == "PATCH" else JSON), **(headers or {})}
        response = await self._transport.request(
            method,
            path,
            query=query,
            body=None if body is None else _encode(body),
            headers=headers,
            timeout=seconds or self._request_timeout,
        )
        if response.status >= 300:
            raise await _error(response)
        try:
            return await response.read()
        finally:
            await response.close()

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Create the binding of a pod; the server refuses it where the UID is not the pod's."""
        metadata: dict[str, object] = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = annotations
        body = {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": {"kind": "Node", "name": node}}
        await self.call("POST", PODS.path(namespace, name, "binding"), body, query=UNVALIDATED)

    async def patch_pod_status(
        self, namespace: str, name: str, status: Mapping[str, object], uid: str = "", version: str = ""
    ) -> bytes:
        """Strategic-merge into a pod's status: conditions merge by type. With a UID, and with a version, the server
        refuses it where the pod has another. The pod as it is then."""
        metadata = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
        patch = {"metadata": metadata, "status": status} if metadata else {"status": status}
        return await self.call("PATCH", PODS.path(namespace, name, "status"), patch, content=STRATEGIC_MERGE_PATCH)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()


def object_of(body: bytes) -> dict[str, Any]:
    """An answer as an object. Raises `ApiError` where it is none."""
    try:
        return _decode_object(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ApiError(200, "Malformed", f"the answer cannot be read: {error}") from error


def _selectors(resource: Kind[Any], label_selector: str) -> dict[str, str]:
    selectors = {"labelSelector": label_selector or resource.label_selector, "fieldSelector": resource.field_selector}
    return {name: text for name, text in selectors.items() if text}


async def _error(response: Response) -> ApiError:
    """The refusal a response carries; a body that is no Status is quoted."""
    try:
        body = await response.read()
    finally:
        await response.close()
    return error_of(response.status, body, response.headers.get("Retry-After", ""))


def error_of(status: int, body: bytes, retry_after: str = "") -> ApiError:
    """The refusal in a Status object's JSON; its own code, where it has one, comes before the HTTP status."""
    seconds = float(retry_after) if retry_after.isdecimal() else 0.0
    try:
        answer = _decode_status(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = body[:200].decode("utf-8", "replace").strip()
        return ApiError(status, "", text or f"HTTP status {status}", seconds)
    code = answer.code or status
    causes = [cause.reason for cause in (answer.details and answer.details.causes) or ()]
    return ApiError(code, answer.reason, answer.message or f"HTTP status {code}", seconds, causes)
