"""Requests and responses, free of sockets; what a path asks for; how long a request may take.

The rules of `RequestInfo` are those of k8s.io/apiserver's request info resolver: `/api/v1/...` is the core group,
`/apis/<group>/<version>/...` every other; a namespace is a resource of its own and the scope of others.

A request may take the query's `timeout`, or a minute. Then it is answered 504, in the bare form of the real server's
filter, and its effect may still happen (https://kubernetes.io/docs/reference/using-api/api-concepts/).
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.clock import Clock
from policyengine.simulator.api_server.scalars import parse_duration
from policyengine.simulator.api_server.statuses import bad_request
from policyengine.simulator.api_server.storage import encode

NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks: a name and groups, as authentication found them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ADMIN = User("admin", ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(slots=True)
class Request:
    """One HTTP request; header names in lower case; `user` set means: already authenticated."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User | None = None
    as_of: int | None = None
    """The revision a read is answered from, where a fault makes it stale."""

    @property
    def user_agent(self) -> str:
        """The client's name as it gives it."""
        return self.headers.get("user-agent", "")

    @property
    def content_type(self) -> str:
        """The body's media type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(slots=True)
class Response:
    """One HTTP response; `body` is an iterator of whole lines for a watch, bytes for everything else."""

    status: int
    headers: dict[str, str]
    body: bytes | AsyncIterator[bytes]


class ConnectionDropped(Exception):
    """The connection breaks without an answer: who answers in the server's place has it so (`ApiServer.answer`).

    `reached`: the server saw the request; False for a connection refused.
    """

    def __init__(self, reached: bool = True) -> None:
        super().__init__("the connection was dropped" if reached else "the connection was refused")
        self.reached = reached


def json_response(status: int, body: object) -> Response:
    """A JSON answer; bytes are JSON already."""
    return Response(status, {"Content-Type": "application/json"}, body if isinstance(body, bytes) else encode(body))


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """What a path and method ask for; `resource` is empty for what is no resource (`/healthz`, `/apis`)."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    selected: str = ""
    """The one name a fieldSelector leaves of a list, watch or collection's deletion."""

    @property
    def means_name(self) -> str:
        """The object's name, by path or by selector: what RBAC's resourceNames are compared with."""
        return self.name or self.selected

    @property
    def full_resource(self) -> str:
        """`pods`, or `pods/binding`, as RBAC's rules name resources."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def is_true(text: str | None) -> bool:
    """A boolean of the query, as Go's conversion reads it: present and neither `false` nor `0`."""
    return text is not None and text.lower() not in ("false", "0")


def parse_path(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """What `method` on `path` asks for."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        return _resource(method, path, query, "", parts[1], parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _resource(method, path, query, parts[1], parts[2], parts[3:])
    return RequestInfo(method.lower(), path)


def _resource(
    method: str, path: str, query: Mapping[str, str], group: str, version: str, rest: list[str]
) -> RequestInfo:
    deprecated_watch = rest[0] == "watch" and len(rest) > 1
    if deprecated_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    # One object by its path is read, whatever the query says; only the old path watches it.
    watching = deprecated_watch or (is_true(query.get("watch")) and not name)
    verb = _verb(method, name, watching)
    selected = "" if name else _selected(query.get("fieldSelector", ""))
    return RequestInfo(verb, path, group, version, namespace, rest[0], name, subresource, selected)


def _selected(selector: str) -> str:
    for term in selector.split(","):
        path, _, value = term.partition("=")
        if path == "metadata.name" and value and not value.startswith("!"):
            return value.removeprefix("=")
    return ""


def _verb(method: str, name: str, watching: bool) -> str:
    if method in ("GET", "HEAD"):
        return "watch" if watching else "get" if name else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return VERBS.get(method, "")


REQUEST_SECONDS = 60.0
LATE = {
    "metadata": {},
    "status": "Failure",
    "message": "Timeout: request did not complete within the allotted timeout",
    "reason": "Timeout",
    "details": {},
    "code": 504,
}


def allowed_seconds(request: Request, info: RequestInfo) -> float | None:
    """Seconds this request may take, None for a watch; raises the 400 of a time-out that is none."""
    text = request.query.get("timeout", "")
    if info.verb in ("watch", "list") or not text:
        return None if info.verb == "watch" else REQUEST_SECONDS
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from error
    return min(seconds, REQUEST_SECONDS) if seconds > 0 else REQUEST_SECONDS


async def within(
    clock: Clock, seconds: float, act: Coroutine[Any, Any, Response], goes_on: bool = False
) -> Response | None:
    """The answer of `act`; None once `seconds` have passed. Then `act` is cancelled, or goes on by itself."""
    work = asyncio.ensure_future(act)
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if not alarm.done():
            return work.result()
        # A loop that stood still meanwhile finds both done, and an answer that came after its time.
        if goes_on or work.done():
            work.add_done_callback(lambda late: None if late.cancelled() else late.exception())
        else:
            work.cancel()
        return None
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        alarm.cancel()
