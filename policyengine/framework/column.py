"""One plugin's answer for one signature, as it is kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from policyengine.framework.status import Refusal, Rows, State, Status

Array = NDArray[Any]


@dataclass(slots=True, eq=False)
class Column:
    """One plugin's answer for one signature. `values` is aligned with the rows of the node table."""

    plugin: str
    status: Status
    """SUCCESS: `values` count. SKIP: the plugin has nothing to say. Otherwise PreFilter's refusal."""
    state: State
    values: Array
    """`int16[nodes]` of a filter (0 passes, else 1 + index into `refusals`), raw scores of a score."""
    refusals: Sequence[Refusal]
    version: int
    """Another number for every change of `values`, never used twice in a cache."""
    based_on: int
    """The version of which this one differs in no row but `patched`; -1 when it is based on none."""
    patched: Rows
    unanimous: bool
    """A filter's column that refuses no row."""
    node_position: int
    pod_position: int
    objects: Hashable
    """What the plugin read beside signature and rows: versions of other objects, its situation."""
    object_changes: int
    """How many changes of other objects there had been when `objects` was seen to hold."""
    settled: bool
    """A skip or refusal that follows from the pod alone, and so stays what it is."""
    behind: bool = False
    """The state is further than `values`, which are worked out again when they are asked for."""
