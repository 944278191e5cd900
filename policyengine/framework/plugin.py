"""The extension points a plugin may implement, as columns.

A plugin is one immutable object: its name, its arguments, a method an extension point. Where kube-scheduler's
plugins judge one node at a time, ours judge *rows* of the node table. One method serves the full and the
incremental case: after a placement or an event it is asked again for just the rows that changed.

Rules a plugin obeys, so that its columns may be kept and shared:
1. `filter` and `score` are functions of (state, snapshot rows) only; `state` is a function of the pod's
   `signature` and the snapshot.
2. Two pods with equal signatures get equal verdicts and raw scores.
3. A row's value changes only when something named by `reads` changes in that row; a plugin whose rows depend on
   others' (topology, inter-pod affinity) says so in `touched`.
4. No clock, no randomness, no mutation of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.status import Rows, State, Status, Verdicts

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.pod_shape import PodShape
    from policyengine.cluster.snapshot import Snapshot

MAX_NODE_SCORE = 100
UNCONCERNED: Final = "(unconcerned)"
"""The signature of a pod that the plugin has nothing to say about, whatever the cluster is: it is not even asked."""
ALIKE: Final = "(alike)"
"""The scale of raw scores at which every row scores the same, whatever its own is."""
Scores = NDArray[np.int64]
P = TypeVar("P")


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

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS, or the reason why the pod is gated."""


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
        """Judge `rows`: `int16[len(rows)]` and the refusals it points at."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Ranks the nodes that passed every filter."""

    @property
    def reads(self) -> Reads:
        """Which parts of a row `score` reads."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What this plugin reads of the pod; `UNCONCERNED` where that makes it skip the pod in any cluster."""

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Prepare for the pod. SKIP: the plugin has no score for it. Depends on no feasible set."""

    def score(self, state: State, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The raw scores of `rows`, before normalisation: int64, or float64 where `normalize` wants it. Several
        values a row (`[rows, k]`) are for `normalize` to make one of."""

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """Map the raw scores of all feasible nodes to 0..100, `int64[feasible]`. Must not write to `scores`."""


@runtime_checkable
class ScaledScorePlugin(ScorePlugin, Protocol):
    """A score whose `normalize` splits in two: what it takes from the whole set, and what it does to each row.

    `normalize(state, s)` equals `rescale(state, scale(state, s), s)`. With an equal scale a row's score depends on
    its own raw score alone, so only rows whose raw score changed are rescaled.
    """

    @property
    def pointwise(self) -> bool:
        """Whether no scale is needed: then `scale` is never asked, and `rescale` gets None."""

    def scale(self, state: State, scores: NDArray[np.generic]) -> Hashable:
        """What normalising takes from the raw scores of all feasible nodes (their maximum, say); `ALIKE` where
        their own are of no account. Never empty."""

    def rescale(self, state: State, scale: Any, scores: NDArray[np.generic]) -> Scores:
        """Map raw scores to 0..100 given the scale; also asked for rows that are not feasible (no matter what
        it answers there, it must not fail). Must not write to `scores`."""


@runtime_checkable
class DomainScorePlugin(ScaledScorePlugin, Protocol):
    """A score that may give all nodes of a topology domain the same. Its `scale` follows from which raw scores there
    are, not from how many rows have each."""

    def deciding_key(self, state: State) -> str | None:
        """The label whose value alone decides a row's raw score, as the state is now; None where more does."""


@runtime_checkable
class FeasibleScorePlugin(ScorePlugin, Protocol):
    """A score whose raw values depend on which nodes are feasible; it is computed anew for each decision."""

    def pre_score_feasible(self, pod: PodInfo, snapshot: Snapshot, feasible: Rows) -> tuple[Status, State]:
        """Prepare for the pod on exactly these feasible rows; replaces `pre_score`."""


@runtime_checkable
class NarrowingPlugin(FilterPlugin, Protocol):
    """A filter whose PreFilter may narrow the nodes to a few by name, before any filter is asked."""

    def narrow(self, state: State) -> frozenset[str] | None:
        """The names of the only nodes that can pass; None when PreFilter leaves all of them."""


@runtime_checkable
class TemplateReader(Plugin, Protocol):
    """A plugin that says whether all pods of one template have one signature for it: same shape, namespace, labels and
    owners. Its signature is not asked for again for the next pod of a run."""

    @property
    def of_template(self) -> bool:
        """Whether the signature follows from these alone: not from name, UID, annotations, or a node."""


@runtime_checkable
class SelectivePlugin(Plugin, Protocol):
    """A plugin for pods of some shapes alone, such as those with volumes."""

    def concerns(self, shape: PodShape) -> bool:
        """Whether it may have to do with pods of this shape. For all others its signature is `UNCONCERNED`, and there
        is nothing to do at Reserve and PreBind, whatever the cluster is."""


@runtime_checkable
class RowFilter(FilterPlugin, Protocol):
    """A filter that can judge one row by itself without making an array for it."""

    def row_filter(self, state: State, snapshot: Snapshot) -> Callable[[int], bool]:
        """Says of a row whether `filter` lets it pass. Of use until a Node changes: pods may come and go meanwhile."""


@runtime_checkable
class MaskFilter(FilterPlugin, Protocol):
    """A filter that can say which of all rows pass without saying why the others do not."""

    def passing(self, state: State, snapshot: Snapshot) -> NDArray[np.bool_] | None:
        """Where `filter` refuses nothing: `bool[nodes]`; None where it refuses no row."""


@runtime_checkable
class RowScore(ScaledScorePlugin, Protocol):
    """A pointwise score that can do the same."""

    def row_score(self, state: State, snapshot: Snapshot) -> Callable[[int], int]:
        """Says of a row what `normalize` makes of its raw `score`: 0..100. Of use for as long."""


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

    def touched(self, state: State, snapshot: Snapshot, changed: Rows) -> Rows | None:
        """Bring `state` up to date, given the rows in which a node or its pods changed since it was prepared or
        last brought up to date (rows may also have gone from the end of the table). Answer with the rows whose
        value may differ now, `changed` included where it matters; None means all rows.
        """

    def standing(self, state: State) -> Status:
        """What `pre_filter` or `pre_score` would answer by the state as it is now; asked after `touched`."""


@runtime_checkable
class IdlePlugin(TopologyPlugin, Protocol):
    """One that mostly has nothing to maintain."""

    def is_idle(self, state: State, snapshot: Snapshot) -> bool:
        """Whether, as things are, pods that came or went since the state was brought up to date change neither rows nor
        standing: `touched` need not be asked. True for a state in which SKIP stands, too."""


@runtime_checkable
class DomainPlugin(TopologyPlugin, Protocol):
    """One that can follow pods which come and go row by row, without making arrays for them."""

    def touched_by_pods(self, state: State, snapshot: Snapshot, rows: Sequence[int]) -> Sequence[int] | Rows | None:
        """`touched` where pods came or went on `rows`, none of them twice, and no Node changed: the same answer, in a
        list where it is few rows. Rows of which the answer stays what it is may be left out, `rows` too."""
