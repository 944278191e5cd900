"""What a fault does to a request, to its answer, or to a line of a watch."""

from dataclasses import dataclass, field

from policyengine.simulator.api_server.http_requests import Request, Response
from policyengine.simulator.api_server.statuses import ApiError, expired
from policyengine.simulator.api_server.storage import decode, encode, metadata


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait before (or, `after`, once the effect is there but before the answer)."""

    seconds: float
    after: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an error and do nothing."""

    error: ApiError


@dataclass(frozen=True, slots=True)
class Overload:
    """Answer 429 as priority and fairness does where a queue is full: plain text and Retry-After."""

    retry_after: int = 1


@dataclass(frozen=True, slots=True)
class Drop:
    """Break the connection, before or after the effect; `reached` False: refuse it."""

    after: bool = False
    reached: bool = True


@dataclass(frozen=True, slots=True)
class Truncate:
    """Send half of the answer's body, or of a watch's first lines, then break the connection."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Answer a read as if the last `revisions` writes had not reached this server yet (as far as its window goes)."""

    revisions: int


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Let others' requests, as administrator, happen right before this one (or, `after`, right after it)."""

    requests: tuple[Request, ...]
    after: bool = False


@dataclass(frozen=True, slots=True)
class Garble:
    """Replace a watch line by a truncated one, or by `text`, and cut the stream."""

    text: bytes | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Send a watch line twice."""


@dataclass(frozen=True, slots=True)
class Reorder:
    """Send the next line first, then this one: an older resourceVersion after a newer."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """Never send a watch line."""


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Keep a line back and send its object's next one as MODIFIED: a delete and a create become an update."""


@dataclass(frozen=True, slots=True)
class Expire:
    """Send an ERROR event with 410 in place of a line, and end the stream."""


@dataclass(frozen=True, slots=True)
class NoBookmarks:
    """Send no bookmark."""


@dataclass(frozen=True, slots=True)
class Cut:
    """End the stream without a word before this line."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing for a time, the connection staying open."""

    seconds: float


Effect = Delay | Fail | Overload | Drop | Truncate | Stale | Meanwhile
LineEffect = Garble | Duplicate | Reorder | Withhold | Coalesce | Expire | NoBookmarks | Cut | Stall
REQUEST_EFFECTS = (Delay, Fail, Overload, Drop, Truncate, Stale, Meanwhile)


def overloaded(retry_after: int) -> Response:
    """429 as the priority-and-fairness filter answers it."""
    headers = {"Content-Type": "text/plain; charset=utf-8", "Retry-After": str(retry_after)}
    return Response(429, headers, b"Too many requests, please try again later.\n")


@dataclass(slots=True)
class Lines:
    """What one watch's faults remember between its lines."""

    held: bytes | None = None
    merged: set[str] = field(default_factory=set)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is kept that changes a later line."""
        return self.held is None and not self.merged

    def apply(self, effect: LineEffect | None, line: bytes) -> tuple[list[bytes], bool]:
        """`(lines to send, whether the stream ends)`."""
        match effect:
            case Withhold() | NoBookmarks():
                return [], False
            case Coalesce():
                self.merged.add(_key(line))
                return [], False
            case Duplicate():
                return [line, line, *self._release()], False
            case Reorder() if self.held is None:
                self.held = line
                return [], False
            case Garble():
                return [effect.text if effect.text is not None else line[: len(line) // 2]], True
            case Expire():
                status = expired("too old resource version: forced by a fault").status()
                return [b'{"type":"ERROR","object":' + encode(status) + b"}\n"], True
            case Cut():
                return [], True
            case _:
                return [self._merge(line), *self._release()], False

    def _release(self) -> list[bytes]:
        held, self.held = self.held, None
        return [held] if held is not None else []

    def _merge(self, line: bytes) -> bytes:
        if not self.merged or _key(line) not in self.merged:
            return line
        self.merged.discard(_key(line))
        rest = line.partition(b",")[2]
        return line if line.startswith(b'{"type":"DELETED"') else b'{"type":"MODIFIED",' + rest


def _key(line: bytes) -> str:
    """Namespace and name of a line's object."""
    obj = decode(line).get("object")
    meta = metadata(obj) if isinstance(obj, dict) and "metadata" in obj else {}
    return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"
