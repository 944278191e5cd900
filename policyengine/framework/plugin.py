"""The extension points a plugin may implement, as columns.

A plugin is one immutable object: its name, its arguments, a method an extension point. Where kube-scheduler's
plugins evaluate one node at a time, ours evaluate *rows* of the node table. One method serves the full and the
incremental case: after a placement or an event it is asked again for just the rows that changed. A score may have
a second form for single rows (`SingleRowPlugin`).

Rules a plugin obeys, so that its columns may be kept and shared:
1. `filter` and `score` are functions of (state, snapshot rows) only; `state` is a function of the pod's
   `signature` and the snapshot.
2. Two pods with equal signatures get equal verdicts and raw scores.
3. A row's value changes only when something named by `reads` changes in that row; a plugin whose rows depend on
   others' (topology, inter-pod affinity) says so in `update`.
4. No clock, no randomness, no mutation of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Flag, auto
from typing import Any, Final, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.status import Rows, State, Status, Verdicts

MAX_NODE_SCORE = 100
UNCONCERNED: Final = "(unconcerned)"
"""The signature of a pod that the plugin has nothing to say about, whatever the cluster is: it is not even asked."""
Scores = NDArray[np.int64]
P = TypeVar("P")


def default_normalize(scores: NDArray[Any], reverse: bool = False) -> Scores:
    """kube-scheduler's DefaultNormalizeScore: 100·s/max in integers, or 100 minus that; if max is 0, all get 0, or 100.
    `scores` are never negative.

    Worked example: 1, 2, 4 become 25, 50, 100, or in reverse 75, 50, 0.
    """
    raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
    maximum = max(0, int(raw.max()))
    if maximum == 0:
        return np.full(len(raw), MAX_NODE_SCORE if reverse else 0)
    share: Scores = raw * MAX_NODE_SCORE // maximum
    return MAX_NODE_SCORE - share if reverse else share


def extends(plugin: object, point: type[P]) -> TypeGuard[P]:
    """Whether a plugin implements an extension point, one of the protocols of this package.

    That is up to its class, and asked once a class: `isinstance` goes through a protocol's members each time, which for
    the rules of a long policy would be most of what loading it costs.
    """
    question = type(plugin), point
    known = _extends.get(question)
    if known is None:
        known = _extends[question] = isinstance(plugin, point)
    return known


_extends: dict[tuple[type, type], bool] = {}


class Reads(Flag):
    """Which parts of a node's row a plugin reads; a change to another part leaves its column as it is."""

    NOTHING = 0
    NODE = auto()
    """The Node object: labels, taints, allocatable, images, spec, conditions."""
    PODS = auto()
    """What stands on the node: requested, pod count, host ports, its pods."""


@runtime_checkable
class Plugin(Protocol):
    """What every plugin has."""

    @property
    def name(self) -> str:
        """The plugin's name, or the rule's, as it appears in rejections and metrics."""

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The changes that can turn a rejection by this plugin; empty for one that never rejects."""


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Asked before a pod may enter the active queue."""

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """SUCCESS, or the reason why the pod is gated; as with kube-scheduler, its owner is not told."""


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Says who of a policy's pods is tried first. Each policy has a queue of its own, and so an order of its own."""

    def queue_key(self, pod: PodInfo, queued_at: float) -> tuple[Any, ...]:
        """The smallest is tried first. `queued_at`: when the pod came, in seconds since the epoch. Of nothing else: a
        key is worked out when the pod enters the active queue and when it changes, not while it waits there."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says which nodes may hold a pod. Its PreFilter and Filter are one: `pre_filter` prepares `filter`."""

    @property
    def reads(self) -> Reads:
        """Which parts of a row `filter` reads."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What this plugin reads of the pod; `UNCONCERNED` where that makes it skip the pod in any cluster."""

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Prepare for the pod. SKIP: every node passes. A rejection refuses the pod outright.

        The state may stay in use for all pods of the signature for as long as the column is kept.
        """

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Evaluate `rows`: `int16[len(rows)]` and the refusals it points at."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores the nodes that passed every filter."""

    @property
    def reads(self) -> Reads:
        """Which parts of a row `score` reads."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What this plugin reads of the pod; `UNCONCERNED` where that makes it skip the pod in any cluster."""

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Prepare for the pod. SKIP: the plugin has no score for it. Depends on no feasible set."""

    def score(self, state: State, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The scores of `rows`, `int64[rows]` of 0..100. Of a `NormalizedScorePlugin` they are raw: any numbers, and
        several of a row (`[rows, k]`) are for `normalize` to make one of."""


@runtime_checkable
class SingleRowPlugin(ScorePlugin, Protocol):
    """A score with a form for single rows: a placement changes one, for which calling numpy costs more than the
    arithmetic."""

    def score_row(self, state: State, snapshot: Snapshot, row: int) -> int:
        """What `score` says of the row."""


@runtime_checkable
class NormalizedScorePlugin(ScorePlugin, Protocol):
    """A score of a node that follows from the raw scores of all feasible nodes (NormalizeScore)."""

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """Map the raw scores of all feasible nodes, never none, to 0..100: `int64[feasible]`, a new array. Must not
        write to `scores`."""


@runtime_checkable
class NarrowingPlugin(FilterPlugin, Protocol):
    """A filter whose PreFilter may narrow the nodes to a few by name, before any filter is asked."""

    def narrow(self, state: State) -> frozenset[str] | None:
        """The names of the only nodes that can pass; None when PreFilter leaves all of them."""


@runtime_checkable
class ObjectReader(Plugin, Protocol):
    """A plugin that reads other kinds of objects (claims, volumes, services, namespaces).

    A change to an object of these kinds makes all its columns be computed again.
    """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds, as in `snapshot.objects(kind)`."""


@runtime_checkable
class SituationReader(Plugin, Protocol):
    """A plugin whose columns follow from more than a pod's signature and the rows: from the cluster as a whole, from
    the time. A column is worked out again when the situation is another than the one it was worked out in."""

    @property
    def situation(self) -> Callable[[PodInfo, Snapshot], Hashable] | None:
        """Says what the plugin reads beside signature and rows, as a value to compare; None where that is nothing."""


@runtime_checkable
class TopologyPlugin(Plugin, Protocol):
    """A filter or score whose row depends on what is in other rows. Its state is maintained, not recounted."""

    def update(self, state: State, snapshot: Snapshot, changed: Rows) -> tuple[Status, Rows | None]:
        """Bring `state` up to date, given the rows in which a node or its pods changed since it was prepared or last
        brought up to date (rows may also have gone from the end of the table). Answer with what `pre_filter` or
        `pre_score` would say by the state as it is now, and with the rows whose value may differ, `changed` included
        where it matters; None means all rows.
        """
