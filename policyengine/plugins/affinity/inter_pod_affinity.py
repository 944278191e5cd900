"""InterPodAffinity: near to some pods, away from others, within a topology domain; and what they say of the pod.

Filter: all required affinity terms (the first pod of a series that means itself is let in), required anti-affinity,
then the required anti-affinity of the pods on nodes.
Score: Σ ± weights of preferred terms, those of pods on nodes too, their required affinity counting
`hardPodAffinityWeight`; 100·(s - min)/(max - min).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import NO_ROWS, Delta, at, union
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import MAX_NODE_SCORE, Reads, Scores
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.affinity.affinity_counts import AffinityCounts, Effects, Incoming
from policyengine.plugins.selectors.affinity_term import Term, terms_of
from policyengine.plugins.topology.pod_index import Int64, PodIndex, PodKind, rows_that_differ

_AFFINITY, _ANTI_AFFINITY, _EXISTING = 1, 2, 3
_REFUSALS: Final = (
    Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match pod affinity rules",)),
    Refusal(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",)),
    Refusal(Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",)),
)


class _FilterState:
    """The verdict on every node, from three counts: near whom the pod must be, from whom it must be away, and whose
    anti-affinity it must respect."""

    status = SUCCESS
    """What PreFilter says."""

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming
        terms = incoming.terms

        def near(kind: PodKind) -> Effects:
            selected = all(incoming.selects(term, kind) for term in terms.affinity)
            return ((term.key, 1) for term in terms.affinity) if selected else ()

        def away(kind: PodKind) -> Effects:
            return ((term.key, 1) for term in terms.anti_affinity if incoming.selects(term, kind))

        def existing(kind: PodKind) -> Effects:
            return ((term.key, 1) for term in kind.terms.anti_affinity if incoming.is_selected_by(term))

        wanted, unwanted = terms.affinity, terms.anti_affinity
        self._near = AffinityCounts(near, _selected(wanted[:1]), _keys(wanted), presence=True)
        self._anti_affinity = AffinityCounts(away, _selected(unwanted), _keys(unwanted), presence=True)
        self._existing = AffinityCounts(existing, lambda index: index.with_terms_about(incoming.labels), presence=True)
        self._is_first = False
        """Whether it is let in as the first pod of a series that means itself."""
        self.column: NDArray[np.int16] = np.zeros(0, dtype=np.int16)
        """0, or the number of the refusal: `int16[nodes]`."""

    def update(self, nodes: NodeTable, rows: Rows) -> Delta:
        """Count `rows` again; the rows whose verdict may have changed, None for all."""
        changed: Delta = NO_ROWS
        for counts in (self._near, self._anti_affinity, self._existing):
            changed = union(changed, counts.update(nodes, rows))
        was_first, terms = self._is_first, self.incoming.terms.affinity
        self._is_first = not self._near.any_sum and all(map(self.incoming.selects_itself, terms))
        if changed is None or self._is_first != was_first or len(self.column) != nodes.n:
            before, self.column = self.column, self._judged(nodes, np.arange(nodes.n))
            return rows_that_differ(before, self.column)
        self.column[changed] = self._judged(nodes, changed)
        return changed

    def _judged(self, nodes: NodeTable, rows: Rows) -> NDArray[np.int16]:
        """Affinity first, then anti-affinity, then the anti-affinity of pods on the nodes: `int16[rows]`."""
        refused = np.zeros(len(rows), dtype=np.int16)
        for number, counts in ((_EXISTING, self._existing), (_ANTI_AFFINITY, self._anti_affinity)):
            for key, domains in counts.by_key.items():
                refused[domains.sums[at(nodes.label_ids(key), rows)] > 0] = number
        for term in self.incoming.terms.affinity:
            ids = at(nodes.label_ids(term.key), rows)
            near = self._near.by_key.get(term.key)
            met = ids >= 0 if self._is_first or near is None else near.sums[ids] > 0
            refused[~met] = _AFFINITY
        return refused


class _ScoreState:
    """The summed preferences at every node."""

    def __init__(self, incoming: Incoming, hard_weight: int) -> None:
        own = incoming.terms.preferred

        def weights(kind: PodKind) -> Effects:
            yield from ((one.term.key, one.weight) for one in own if incoming.selects(one.term, kind))
            theirs = kind.terms.preferred
            yield from ((one.term.key, one.weight) for one in theirs if incoming.is_selected_by(one.term))
            required = kind.terms.affinity if hard_weight else ()
            yield from ((term.key, hard_weight) for term in required if incoming.is_selected_by(term))

        def among(index: PodIndex) -> Iterable[PodKind]:
            return dict.fromkeys((*selected(index), *index.with_terms_about(incoming.labels)))

        selected = _selected([one.term for one in own])
        keys = {one.term.key for one in own}
        self._weights = AffinityCounts(weights, among, keys)
        self._matches = AffinityCounts(lambda kind: ((key, 1) for key, _ in weights(kind)), among, keys)
        """Weights of both signs may add up to 0."""
        self.column: Int64 = np.zeros(0, dtype=np.int64)
        """`int64[nodes]`"""

    @property
    def status(self) -> Status:
        """What PreScore says: skipped as long as no term matches on any node that has its topology key."""
        return SUCCESS if self._matches.any_sum else SKIP

    def update(self, nodes: NodeTable, rows: Rows) -> Delta:
        """Count `rows` again; the rows whose sum may have changed, None for all."""
        changed = self._weights.update(nodes, rows)
        self._matches.update(nodes, rows)
        if changed is None or len(self.column) != nodes.n:
            before, self.column = self.column, self._weights.total(nodes, np.arange(nodes.n))
            return rows_that_differ(before, self.column)
        self.column[changed] = self._weights.total(nodes, changed)
        return changed


class InterPodAffinity:
    """Reads terms, labels and namespace of the pod, and those of the pods on nodes."""

    name = "InterPodAffinity"
    reads = Reads.NODE | Reads.PODS
    kinds = ("Namespace",)
    arguments: Final = schema_of(
        hardPodAffinityWeight={"type": "integer", "minimum": 0, "maximum": 100},
        ignorePreferredTermsOfExistingPods={"type": "boolean"},
    )

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """InterPodAffinityArgs."""
        arguments = arguments or {}
        self._hard_weight = int(arguments.get("hardPodAffinityWeight", 1))
        self._own_terms_only = bool(arguments.get("ignorePreferredTermsOfExistingPods", False))

    def signature(self, pod: PodInfo) -> Hashable:
        """Namespace, labels and terms."""
        return pod.namespace, tuple(pod.labels.items()), terms_of(pod)

    def situation(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """Whether there are terms: the pod's, or those of a pod on a node."""
        return pod.shape.concerns_pods or snapshot.nodes.concerned_pods > 0

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Count the pods on nodes; skipped where there are no terms. A malformed selector refuses the pod."""
        if not self.situation(pod, snapshot):
            return SKIP, None
        terms = terms_of(pod)
        if terms.problem is not None:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (terms.problem,)), None
        state = _FilterState(Incoming(pod, terms, snapshot))
        state.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        return SUCCESS, state

    def filter(self, state: _FilterState, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Affinity first, then anti-affinity, then the anti-affinity of pods on the nodes."""
        return Verdicts(state.column[rows], _REFUSALS)

    def is_eviction_blind(self, state: _FilterState | None) -> bool:
        """Whether the pod requires no affinity and no domain refuses it: with fewer pods none does either."""
        return state is None or (not state.incoming.terms.affinity and not state.column.any())

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped where no term of either side matches."""
        terms = terms_of(pod)
        if terms.problem is not None or (self._own_terms_only and not terms.preferred):
            return SKIP, None
        if not self.situation(pod, snapshot):
            return SKIP, None
        state = _ScoreState(Incoming(pod, terms, snapshot), self._hard_weight)
        state.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        return state.status, state

    def score(self, state: _ScoreState, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The sums of the node's domains."""
        return state.column[rows]

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """Linear between the smallest and the largest sum, truncated; 0 for all where they are equal."""
        raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
        least, most = int(raw.min()), int(raw.max())
        if least == most:
            return np.zeros(len(raw), dtype=np.int64)
        share: Scores = (MAX_NODE_SCORE * ((raw - least) / float(most - least))).astype(np.int64)
        return share

    def update(
        self, state: _FilterState | _ScoreState, snapshot: Snapshot, changed: Rows
    ) -> tuple[Status, Rows | None]:
        """All rows where the verdict, or the sum of preferences, may have changed."""
        rows = state.update(snapshot.nodes, changed)
        return state.status, rows

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that come, go or change labels; nodes that change domains."""
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (
            on(Resource.POD, pods, _pod_changed),
            on(Resource.NODE, nodes, _node_changed),
        )


def _keys(terms: Iterable[Term]) -> set[str]:
    return {term.key for term in terms}


def _selected(terms: Iterable[Term]) -> Callable[[PodIndex], Iterable[PodKind]]:
    selectors = [term.selector for term in terms]
    return lambda index: index.selected_by(selectors)


def _pod_changed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    if any(one is not None and not (one.node_name or one.nominated_node_name) for one in (old, new)):
        return False
    terms = terms_of(pod)
    if terms.problem is not None:
        return True
    if old is not None and new is not None:
        came_to_match = not _all_mean(terms.affinity, old) and _all_mean(terms.affinity, new)
        ceased_to = _all_mean(terms.anti_affinity, old) and not _all_mean(terms.anti_affinity, new)
        return came_to_match or ceased_to
    if new is not None:
        return _all_mean(terms.affinity, new)
    if old is None:
        return False
    return _all_mean(terms.anti_affinity, old) or _all_mean(terms_of(old).anti_affinity, pod)


def _all_mean(terms: Sequence[Term], pod: PodInfo) -> bool:
    """Whether there are terms and all mean the pod. A namespace selector may mean its namespace: it counts as
    matching, since a hint does not see namespaces; at worst the pod is asked once too often."""
    return bool(terms) and all(
        (pod.namespace in term.namespaces or not term.namespace_selector.nothing) and term.selector.matches(pod.labels)
        for term in terms
    )


def _node_changed(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    """A pod without terms was kept out by those of others, and a node that comes may be in none of their domains.
    kube-scheduler lets it wait (`isSchedulableAfterNodeChange`, plugins/interpodaffinity/plugin.go, v1.36)."""
    terms = terms_of(pod)
    if new is None:
        return False
    if terms.problem is not None:
        return True
    before: Mapping[str, str] = {} if old is None else old.metadata.labels
    after = new.metadata.labels
    if not terms.affinity and old is None:
        return True
    for term in terms.affinity:
        if term.key in after and after[term.key] != before.get(term.key):
            return True
    for term in terms.anti_affinity:
        if old is None or (term.key in before and after.get(term.key) != before[term.key]):
            return True
    return False
