"""Where the elements of a list of nodes or pods stand, and to which of the asked nodes each belongs.

`pods` and `nodes` are one group; `node.pods` and `node.nominated` one for each asked node; a domain's lists one for
each value of the label. Nothing here goes through nodes or pods one by one, but for the few of a few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns.aggregates import Groups, Members
from policyengine.compiler.columns.column import Column, Fault, Faults, Mask, faults_where
from policyengine.compiler.columns.frame import Frame, PodFrame, Vector

Rows = NDArray[np.int64]
FEW: Final = 32
"""Of so few nodes the pods are looked up one by one: less work than going through all pods there are."""


@dataclass(frozen=True, slots=True)
class Found:
    """The elements, and the group of each; `spread` brings what holds for groups to the asked rows."""

    elements: Frame
    groups: Groups
    count: int
    index: Rows | None = None
    """The group of each asked row; None: the groups are the asked rows in order, or there is but one."""
    faults: Faults | None = None
    """Asked rows without a group."""
    is_single: bool = False

    @property
    def members(self) -> Members:
        """All elements."""
        return Members(self.groups, self.count)

    def spread(self, column: Column) -> Column:
        """A column of groups as one of the asked rows."""
        if self.is_single:
            return _first(column)
        return (column if self.index is None else column.take(self.index)).with_faults(self.faults)


def _first(column: Column) -> Column:
    """The one row of a column as a column of one value."""
    return Column(
        column.values[0],
        None if column.faults is None or not column.faults[0] else column.faults[0],
        None if column.present is None or column.present[0] else column.present[0],
        column.dictionary,
    )


Locate = Callable[[Frame], Found]


def all_pods(frame: Frame) -> Found:
    """`pods`."""
    pods = frame.nodes.pod_table.current()
    elements = PodFrame(frame.nodes, None, frame.hoisted, pods)
    return Found(elements, np.zeros(pods.n, np.int64), 1, is_single=True)


def all_nodes(frame: Frame) -> Found:
    """`nodes`."""
    nodes = frame.nodes
    return Found(Frame(nodes, None, frame.hoisted), np.zeros(nodes.n, np.int64), 1, is_single=True)


def node_pods(frame: Frame) -> Found:
    """`node.pods`."""
    pods = frame.nodes.pod_table.current()
    if frame.rows is not None and len(frame.rows) <= FEW:
        standing = [frame.nodes.pods_on(row) for row in frame.rows.tolist()]
        places = pods.places(uid for there in standing for uid in there)
        owners = np.repeat(np.arange(frame.count), [len(there) for there in standing])
    else:
        places, owners = _of_asked(frame, np.arange(pods.n), pods.rows.astype(np.int64))
    return Found(PodFrame(frame.nodes, places, frame.hoisted, pods, frame, owners), owners, frame.count)


def _of_asked(frame: Frame, places: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Those of `places` whose row is asked for, and where it stands among the asked ones."""
    if frame.rows is None:
        positions = rows
    else:
        position = np.full(frame.nodes.n + 1, -1, np.int64)  # the last entry is that of row -1
        position[frame.rows] = np.arange(frame.count)
        positions = position[rows]
    asked = np.flatnonzero(positions >= 0)
    return places[asked], positions[asked]


def nominated_pods(itself: Vector) -> Locate:
    """`node.nominated`; `itself` says the UID of the pod being placed, where that one is nominated."""

    def locate(frame: Frame) -> Found:
        pods = frame.nodes.pod_table.current()
        places, owners = _of_asked(frame, *pods.nominated())
        own = itself(frame)
        assert own.dictionary is not None
        uid = own.dictionary[int(own.values)]
        others = np.array([pods.infos[place].uid != uid for place in places.tolist()], np.bool_)
        places, owners = places[others], owners[others]
        return Found(PodFrame(frame.nodes, places, frame.hoisted, pods, frame, owners), owners, frame.count)

    return locate


@dataclass(frozen=True, slots=True)
class _Domains:
    """The values of a label: `ids` of all nodes, which of the values are asked for, and the asked rows' own."""

    ids: Rows
    wanted: Mask
    index: Rows
    faults: Faults | None

    @property
    def rows(self) -> Mask:
        """The nodes in a wanted domain."""
        return self.wanted[self.ids]


def _domains(frame: Frame, key: Column) -> _Domains:
    nodes = frame.nodes
    if key.faults is not None or key.dictionary is None:
        no_id = np.full(nodes.n, 0, np.int64)
        faults = np.broadcast_to(np.uint8(Fault.FAILED) if key.faults is None else key.faults, (frame.count,))
        return _Domains(no_id, np.zeros(1, np.bool_), frame.pick(no_id), faults)
    label = key.dictionary[int(key.values)]
    # The last domain is that of the nodes without the label: nobody asks for it.
    without = len(nodes.label_values(label))
    ids = nodes.label_ids(label).astype(np.int64)
    ids = np.where(ids < 0, without, ids)
    index = frame.pick(ids)
    wanted = np.zeros(without + 1, np.bool_)
    wanted[index] = True
    wanted[without] = False
    return _Domains(ids, wanted, index, faults_where(index == without, Fault.NO_DOMAIN))


def domain_pods(key: Vector) -> Locate:
    """`node.domain(key).pods`."""

    def locate(frame: Frame) -> Found:
        pods, domains = frame.nodes.pod_table.current(), _domains(frame, key(frame))
        rows = np.append(domains.rows, False)  # the last entry is that of pods without a node
        places = np.flatnonzero(rows[pods.rows])
        groups = domains.ids[pods.rows[places]]
        elements = PodFrame(frame.nodes, places, frame.hoisted, pods)
        return Found(elements, groups, len(domains.wanted), domains.index, domains.faults)

    return locate


def domain_nodes(key: Vector) -> Locate:
    """`node.domain(key).nodes`."""

    def locate(frame: Frame) -> Found:
        domains = _domains(frame, key(frame))
        rows = np.flatnonzero(domains.rows)
        elements = Frame(frame.nodes, rows, frame.hoisted)
        return Found(elements, domains.ids[rows], len(domains.wanted), domains.index, domains.faults)

    return locate
