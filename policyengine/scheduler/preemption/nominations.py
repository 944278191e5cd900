"""Which node is being cleared for which pod, as decided here and not yet shown by the watch.

`status.nominatedNodeName` is written with a patch, so for a while the watch shows what it was before. Until it shows
something else our own word counts; then the server's does (UpdateNominatedPod, backend/queue/nominator.go, v1.36).
What the view holds is always the word that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Nomination(NamedTuple):
    """A nomination that was decided here."""

    seen: str
    """What the server showed when it was decided."""
    node: str
    """What was decided; "" that there is none any more."""


class Nominations:
    """By pod UID, those that the watch has not confirmed."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Nomination] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_uid)

    def __len__(self) -> int:
        return len(self._by_uid)

    def decide(self, uid: str, shown: str, node: str) -> None:
        """A node was decided on. `shown`: what the view held before, which is the server's word unless an earlier
        decision is not confirmed yet."""
        earlier = self._by_uid.get(uid)
        seen = shown if earlier is None else earlier.seen
        if seen == node:
            self._by_uid.pop(uid, None)
        else:
            self._by_uid[uid] = Nomination(seen, node)

    def observed(self, uid: str, node: str) -> str:
        """The server shows `node`; answers with the node that counts."""
        decided = self._by_uid.get(uid)
        if decided is None:
            return node
        if decided.seen == node:
            return decided.node
        del self._by_uid[uid]
        return node

    def forget(self, uid: str) -> None:
        """The pod waits no more."""
        self._by_uid.pop(uid, None)
