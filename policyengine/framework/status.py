"""What a plugin answers: a `Status` for one pod or node, `Verdicts` for a column of nodes.

A refusal is a value, never an exception; an exception is a bug. Codes and their meaning are those of
kube-scheduler's framework (`staging/src/k8s.io/kube-scheduler/framework`, v1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.enum_members import direct_members


@direct_members
class Code(IntEnum):
    """kube-scheduler's status codes, with its numbers."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def wire_name(self) -> str:
        """The name kube-scheduler prints: `UnschedulableAndUnresolvable`."""
        return self.name.title().replace("_", "")


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's answer about one pod, or about one pod on one node."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the pod may go on."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the plugin has nothing to say about this pod."""
        return self.code is Code.SKIP

    @property
    def is_rejection(self) -> bool:
        """Whether the plugin refused the pod (Pending included), rather than failed."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """The reasons as one sentence, joined as kube-scheduler joins them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same answer, signed with the plugin's name."""
        return Status(self.code, self.reasons, plugin)


_REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})

SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way in which a filter refuses nodes; a verdict column points at these by number.

    `reasons` are what counting (`2 Insufficient cpu`) and `explain` show. Where the text differs from node to
    node (a rule's `else "needs {x}, has {node.free.memory}"`), `render` writes the reason of each of some rows, and
    `reasons` is left empty; refusals with one `Refusal` are still counted together, quoting the first node.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    render: Callable[[Rows], Sequence[str]] | None = field(default=None, compare=False)

    def reasons_at(self, row: int) -> tuple[str, ...]:
        """The reasons as they read for the node in `row`."""
        return self.reasons if self.render is None else tuple(self.render(np.array([row])))


Rows = NDArray[np.int64]
"""Row numbers of the node table, ascending, without repetition: `int64[m]`."""


@dataclass(slots=True)
class Verdicts:
    """A filter's answer for some rows: `refused[i]` is 0 where row i passes, else 1 + index into `refusals`.

    `refused` is `int16[m]`, aligned with the rows that were asked for. The table of refusals belongs to the
    plugin's state for the pod (it may grow while the state lives, entries never change place).
    """

    refused: NDArray[np.int16]
    refusals: Sequence[Refusal]


def passed(count: int) -> Verdicts:
    """The verdicts of a filter that lets all of `count` rows pass."""
    return Verdicts(np.zeros(count, dtype=np.int16), ())


State = Any
"""What a plugin's `pre_filter` or `pre_score` prepared for a pod; only the plugin reads it."""
