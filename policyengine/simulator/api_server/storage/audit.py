"""The log of all writes: what an auditor that shares no code with the scheduler reads.

One record a write, in order of resourceVersion; requests that changed nothing leave none.
"""

from collections import deque
from dataclasses import dataclass

from policyengine.simulator.api_server.storage.store import Object, decode


@dataclass(frozen=True, slots=True)
class Write:
    """One write as it took effect; the objects are without `kind` and `apiVersion`."""

    verb: str
    kind: str
    namespace: str
    name: str
    subresource: str
    user: str
    user_agent: str
    resource_version: int
    time: float
    before_raw: bytes | None
    after_raw: bytes | None

    @property
    def key(self) -> str:
        """`namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def before(self) -> Object | None:
        """The object before; None for a create."""
        return None if self.before_raw is None else decode(self.before_raw)

    @property
    def after(self) -> Object | None:
        """The object after; None for a removal."""
        return None if self.after_raw is None else decode(self.after_raw)


class WriteLog:
    """The last `limit` writes (all, where it is None); `dropped` counts those that fell out."""

    def __init__(self, limit: int | None = None) -> None:
        self.writes: deque[Write] = deque(maxlen=limit)
        self.dropped = 0

    def add(self, write: Write) -> None:
        """Note one write."""
        if self.writes.maxlen is not None and len(self.writes) == self.writes.maxlen:
            self.dropped += 1
        self.writes.append(write)

    def story(self, kind: str, key: str) -> list[Write]:
        """One object's writes, in order."""
        return [write for write in self.writes if write.kind == kind and write.key == key]
