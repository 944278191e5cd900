"""The nodes that a request is about, in the order it names them: by name, or whole.

kube-scheduler asks for the scores of a pod's nodes right after its filter, and names them as the filter's answer did;
so what was asked and answered last is remembered, and costs nothing the second time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import compress, repeat
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.server.extender import wire
from policyengine.server.extender.node_names import Names, NameTable

REMEMBERED = 8
"""Lists of names: a few pods may be under way at once. Each takes about 100 bytes a node."""

Rows = NDArray[np.int64]


class AskedNodes(Protocol):
    """What filter and prioritize are asked about."""

    rows: Rows
    """The row of each; -1 for one that is not known."""

    @property
    def names(self) -> Sequence[str]:
        """The name of each."""

    def kept(self, passing: NDArray[np.bool_]) -> dict[str, object]:
        """Those of them, as a field of ExtenderFilterResult."""

    def priorities(self, scores: Rows) -> bytes:
        """HostPriorityList: 0..10 for each."""


class NamedNodes:
    """Nodes by name, each looked up."""

    def __init__(self, names: Sequence[str], nodes: NodeTable) -> None:
        self.names = names
        self.rows: Rows = np.array(list(map(nodes.row_of.get, names, repeat(-1))), dtype=np.int64)

    def kept(self, passing: NDArray[np.bool_]) -> dict[str, object]:
        """Their names."""
        return {"NodeNames": list(compress(self.names, passing.tolist()))}

    def priorities(self, scores: Rows) -> bytes:
        """Written one by one."""
        return wire.priorities(self.names, scores.tolist())


class WholeNodes(NamedNodes):
    """Nodes as they were sent."""

    def __init__(self, sent: Mapping[str, msgspec.Raw], nodes: NodeTable) -> None:
        super().__init__(list(sent), nodes)
        self._sent = sent

    def kept(self, passing: NDArray[np.bool_]) -> dict[str, object]:
        """As they came."""
        return {"Nodes": {"metadata": {}, "items": list(compress(self._sent.values(), passing.tolist()))}}


class ReadNames:
    """Nodes by name, all found at once."""

    def __init__(self, names: Names, rows: Rows, known: KnownNames) -> None:
        self.rows = rows
        self._names = names
        self._known = known

    @property
    def names(self) -> Sequence[str]:
        """Decoded only where they are needed."""
        return wire.decode_names(self._names.text)

    def kept(self, passing: NDArray[np.bool_]) -> dict[str, object]:
        """What is left of the request's own text."""
        text = self._names.text
        if not passing.all():
            text = self._names.cut(passing)
            self._known.remember(text, self.rows[passing])
        return {"NodeNames": msgspec.Raw(text)}

    def priorities(self, scores: Rows) -> bytes:
        """Copied from entries that are kept for all nodes, where all are known."""
        if self._known.entries is None or (self.rows < 0).any():
            return wire.priorities(self.names, scores.tolist())
        return self._known.entries.list_of(self.rows, scores)


class KnownNames:
    """The names of one node table, and the lists of names met last."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._table: NameTable | None = None
        self.entries: PriorityEntries | None = None
        self._last: deque[ReadNames] = deque(maxlen=REMEMBERED)

    def asked(self, text: bytes, nodes: NodeTable) -> AskedNodes:
        """The nodes of a request, `text` being its JSON array of names. Raises `wire.BadRequest`."""
        if nodes.names != self._names:
            self._learn(nodes.names)
        for one in self._last:
            if one._names.text == text:
                return one
        if self._table is None or (names := Names.read(text)) is None:
            return NamedNodes(wire.decode_names(text), nodes)
        found = ReadNames(names, self._table.rows(names), self)
        self._last.append(found)
        return found

    def remember(self, text: bytes, rows: Rows) -> None:
        """These names will be asked about next."""
        names = Names.read(text)
        if names is not None:
            self._last.append(ReadNames(names, rows, self))

    def _learn(self, names: list[str]) -> None:
        self._names = names.copy()
        self._last.clear()
        try:
            self._table = NameTable(names)
        except ValueError:
            self._table = None
        self.entries = PriorityEntries.of(names) if self._table is not None else None


class PriorityEntries:
    """An entry of HostPriorityList for each node, all of one width: white space before the score fills them up."""

    WIDER = 2
    """Times that an answer may be as long as it need be."""

    def __init__(self, entries: NDArray[np.uint8]) -> None:
        self._entries = entries
        """`uint8[nodes, width]`: two places for the score before the last two."""

    @classmethod
    def of(cls, names: Sequence[str]) -> PriorityEntries | None:
        """None where names differ so much in length that answers would become long."""
        encoded = [msgspec.json.encode(name) for name in names]
        texts = [b'{"Host":' + name + b',"Score":' for name in encoded]
        width = max(map(len, texts)) + 4
        if width * len(texts) > cls.WIDER * sum(map(len, texts)) + 4 * len(texts):
            return None
        whole = b"".join(text.ljust(width - 2) + b"}," for text in texts)
        return cls(np.frombuffer(whole, dtype=np.uint8).reshape(len(texts), width))

    def list_of(self, rows: Rows, scores: Rows) -> bytes:
        """The list for nodes by row, with a score of at most two digits each."""
        entries = self._entries.take(rows, axis=0)
        tens, ones = np.divmod(scores, 10)
        entries[:, -4] = np.where(tens > 0, ord("0") + tens, ord(" "))
        entries[:, -3] = ord("0") + ones
        return b"[" + entries.tobytes()[:-1] + b"]"
