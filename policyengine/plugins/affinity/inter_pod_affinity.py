"""InterPodAffinity: near to some pods, away from others, within a topology domain; and what they say of the pod.

Filter: all required affinity terms (the first pod of a series that means itself is let in), required anti-affinity,
then the required anti-affinity of standing pods.
Score: Σ ± weights of preferred terms, those of standing pods too, their required affinity counting
`hardPodAffinityWeight`; 100·(s - min)/(max - min).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import ALIKE, MAX_NODE_SCORE, Reads, Scores
from policyengine.framework.rows import at
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.affinity.affinity_counts import AffinityCounts, Effect, Incoming
from policyengine.plugins.affinity.affinity_hints import affinity_events
from policyengine.plugins.selectors.affinity_term import Term, terms_of
from policyengine.plugins.topology.domain_counts import DomainsMoved, Moved, rows_in
from policyengine.plugins.topology.domain_rows import rows_moved
from policyengine.plugins.topology.pod_index import PodIndex, PodKind, pod_index

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable
    from policyengine.cluster.snapshot import Snapshot

NAME: Final = "InterPodAffinity"
_AFFINITY, _ANTI_AFFINITY, _EXISTING = 1, 2, 3
_REFUSALS: Final = (
    Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match pod affinity rules",)),
    Refusal(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",)),
    Refusal(Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",)),
)

ARGUMENTS: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "hardPodAffinityWeight": {"type": "integer", "minimum": 0, "maximum": 100},
        "ignorePreferredTermsOfExistingPods": {"type": "boolean"},
    },
    "additionalProperties": False,
}

_Tables = dict[str, NDArray[np.bool_]]


class _FilterState:
    """Three counts, and which domains they make forbidden or wanted."""

    __slots__ = ("_counts", "anti_affinity", "existing", "first_of_series", "incoming", "near")

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming
        terms = incoming.terms

        def near(kind: PodKind) -> Effect:
            meant = bool(terms.affinity) and incoming.means_all(terms.affinity, kind)
            return tuple((term.key, 1, 1) for term in terms.affinity) if meant else ()

        def away(kind: PodKind) -> Effect:
            return tuple((term.key, 1, 1) for term in terms.anti_affinity if incoming.means(term, kind))

        def existing(kind: PodKind) -> Effect:
            return tuple((term.key, 1, 1) for term in kind.terms.anti_affinity if incoming.is_meant_by(term))

        self._counts = (
            AffinityCounts(near, _keys(terms.affinity), lambda index: _selected(index, terms.affinity[:1]), False),
            AffinityCounts(
                away, _keys(terms.anti_affinity), lambda index: _selected(index, terms.anti_affinity), False
            ),
            AffinityCounts(existing, (), lambda index: index.meaning(incoming.labels), True),
        )
        self.near: _Tables = {}
        self.anti_affinity: _Tables = {}
        self.existing: _Tables = {}
        self.first_of_series = False

    def update(self, nodes: NodeTable, rows: Rows) -> DomainsMoved | None:
        """Count `rows` as they are now; the domains whose verdict changed, None: any may have."""
        index = pod_index(nodes)
        if self.silent and not index.with_affinity:
            return {}
        moves = [counts.update(nodes, index, rows) for counts in self._counts]
        if not any(move is None or move for move in moves):
            return {}
        tables = (self.near, self.anti_affinity, self.existing)
        first_of_series = self._is_first_of_series()
        if any(move is None for move in moves) or first_of_series != self.first_of_series:
            before = (*tables, self.first_of_series)
            self.judge()
            after = (self.near, self.anti_affinity, self.existing)
            return {} if before[3] == self.first_of_series and all(map(_same, before[:3], after)) else None
        return self._flip(moves)

    def recount(self, nodes: NodeTable, rows: Sequence[int]) -> DomainsMoved | None:
        """The same where pods came or went on the rows and no Node changed."""
        index = pod_index(nodes)
        if self.silent and not index.with_affinity:
            return {}
        moves: list[DomainsMoved] = []
        for counts in self._counts:
            move = counts.recount(index, rows)
            if move is None:
                self.update(nodes, np.array(rows, dtype=np.int64))
                self.judge()
                return None
            moves.append(move)
        if moves[0]:
            first_of_series = self._is_first_of_series()
            if first_of_series != self.first_of_series:
                self.judge()
                return None
        return self._flip(moves)

    def _flip(self, moves: Iterable[DomainsMoved | None]) -> DomainsMoved:
        """Judge the domains that moved; those whose verdict is another now."""
        tables = (self.near, self.anti_affinity, self.existing)
        flipped: dict[str, Moved] = {}
        for table, counts, move in zip(tables, self._counts, moves, strict=True):
            if not move:
                continue
            for key, domains in move.items():
                members = counts.by_key[key].members
                for domain in domains:
                    if table[key].item(domain) != (members.item(domain) > 0):
                        table[key][domain] = not table[key].item(domain)
                        flipped.setdefault(key, set()).add(domain)
        return flipped

    @property
    def silent(self) -> bool:
        """Whether the pod has no terms and none of a standing pod was ever met that means it."""
        near, away, existing = self._counts
        return not (near.by_key or away.by_key or existing.by_key)

    def judge(self) -> None:
        """Judge the domains by the counts."""
        near, away, existing = self._counts
        self.near, self.anti_affinity, self.existing = near.tables(), away.tables(), existing.tables()
        self.first_of_series = self._is_first_of_series()

    def _is_first_of_series(self) -> bool:
        terms = self.incoming.terms.affinity
        return bool(terms) and not self._counts[0].any_match and self.incoming.means_itself(terms)


class _ScoreState:
    """The summed preferences."""

    __slots__ = ("counts",)

    def __init__(self, incoming: Incoming, hard_weight: int) -> None:
        own = incoming.terms.preferred

        def effect(kind: PodKind) -> Effect:
            mine = [(one.term.key, 1, one.weight) for one in own if incoming.means(one.term, kind)]
            theirs = [(one.term.key, 1, one.weight) for one in kind.terms.preferred if incoming.is_meant_by(one.term)]
            required = kind.terms.affinity if hard_weight else ()
            hard = [(term.key, 1, hard_weight) for term in required if incoming.is_meant_by(term)]
            return (*mine, *theirs, *hard)

        def among(index: PodIndex) -> Iterable[PodKind]:
            mine = _selected(index, [one.term for one in own])
            return {kind: None for kinds in (mine, index.meaning(incoming.labels)) for kind in kinds}

        self.counts = AffinityCounts(effect, {one.term.key for one in own}, among, True)

    @property
    def silent(self) -> bool:
        """Whether the pod has no preferences and none of a standing pod was ever met that means it."""
        return not self.counts.by_key


class InterPodAffinity:
    """Reads terms, labels and namespace of the pod, and labels, namespaces and terms of standing pods."""

    name = NAME
    reads = Reads.NODE | Reads.PODS
    of_template = True
    kinds = ("Namespace",)
    pointwise = False

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """InterPodAffinityArgs."""
        arguments = arguments or {}
        self._hard_weight = int(arguments.get("hardPodAffinityWeight", 1))
        self._own_terms_only = bool(arguments.get("ignorePreferredTermsOfExistingPods", False))

    def signature(self, pod: PodInfo) -> Hashable:
        """Namespace, labels and terms."""
        return pod.namespace, tuple(pod.labels.items()), terms_of(pod)

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Counts what stands. A malformed selector refuses the pod."""
        terms = terms_of(pod)
        if terms.problem is not None:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (terms.problem,)), None
        state = _FilterState(Incoming(pod, terms, snapshot))
        state.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        state.judge()
        return SUCCESS, state

    def passes(self, state: State, snapshot: Snapshot, row: int) -> bool:
        """The same of one row."""
        affinity: _FilterState = state
        nodes = snapshot.nodes
        for tables in (affinity.existing, affinity.anti_affinity):
            for key, table in tables.items():
                if table.item(nodes.label_ids(key).item(row)):
                    return False
        for term in affinity.incoming.terms.affinity:
            domain = nodes.label_ids(term.key).item(row)
            if not (domain >= 0 if affinity.first_of_series else affinity.near[term.key].item(domain)):
                return False
        return True

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Affinity first, then anti-affinity, then what standing pods refuse."""
        affinity: _FilterState = state
        nodes = snapshot.nodes
        refused = np.zeros(len(rows), dtype=np.int16)
        for number, tables in ((_EXISTING, affinity.existing), (_ANTI_AFFINITY, affinity.anti_affinity)):
            for key, table in tables.items():
                refused[table[at(nodes.label_ids(key), rows)]] = number
        for term in affinity.incoming.terms.affinity:
            ids = at(nodes.label_ids(term.key), rows)
            met = ids >= 0 if affinity.first_of_series else affinity.near[term.key][ids]
            refused[~met] = _AFFINITY
        return Verdicts(refused, _REFUSALS)

    def is_eviction_blind(self, state: State) -> bool:
        """Where the pod must be near nobody and is kept from no domain: fewer pods keep it from none either."""
        affinity: _FilterState = state
        tables = (*affinity.anti_affinity.values(), *affinity.existing.values())
        return not affinity.incoming.terms.affinity and not any(table.any() for table in tables)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped where no term of either side matches."""
        terms = terms_of(pod)
        if terms.problem is not None or (self._own_terms_only and not terms.preferred):
            return SKIP, None
        state = _ScoreState(Incoming(pod, terms, snapshot), self._hard_weight)
        state.counts.update(snapshot.nodes, pod_index(snapshot.nodes), np.arange(snapshot.nodes.n))
        return self.standing(state), state

    def score(self, state: State, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The sums of the node's domains."""
        preferences: _ScoreState = state
        nodes, by_key = snapshot.nodes, preferences.counts.by_key
        sums = [counts.padded_sums[at(nodes.label_ids(key), rows)] for key, counts in by_key.items()]
        total = sums[0] if sums else np.zeros(len(rows), dtype=np.int64)
        for more in sums[1:]:
            total += more
        return total

    def deciding_key(self, state: State) -> str | None:
        """The topology key of all terms, where they have one in common."""
        preferences: _ScoreState = state
        return next(iter(preferences.counts.by_key)) if len(preferences.counts.by_key) == 1 else None

    def scale(self, state: State, scores: NDArray[np.generic]) -> Hashable:
        """The smallest and the largest sum."""
        raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
        least, most = int(np.minimum.reduce(raw)), int(np.maximum.reduce(raw))
        return (least, most) if least < most else ALIKE

    def rescale(self, state: State, scale: Any, scores: NDArray[np.generic]) -> Scores:
        """Linear between the two, truncated; 0 for all where they are equal."""
        if scale == ALIKE:
            return np.zeros(len(scores), dtype=np.int64)
        least, most = scale
        raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
        share: Scores = (MAX_NODE_SCORE * ((raw - least) / float(most - least))).astype(np.int64)
        return share

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """Linear between the smallest and the largest."""
        return self.rescale(state, self.scale(state, scores), scores)

    def touched(self, state: State, snapshot: Snapshot, changed: Rows) -> Rows | None:
        """All rows where a domain's verdict, or for scores a domain's sum, changed."""
        nodes = snapshot.nodes
        if self.is_idle(state, snapshot):
            return changed[:0]
        if isinstance(state, _FilterState):
            moved = state.update(nodes, changed)
            if moved == {} and state.silent:
                return changed[:0]
        else:
            preferences: _ScoreState = state
            moved = preferences.counts.update(nodes, pod_index(nodes), changed)
        return None if moved is None else rows_in(moved, nodes, changed)

    def touched_by_pods(self, state: State, snapshot: Snapshot, rows: Sequence[int]) -> Sequence[int] | Rows | None:
        """The rows of the domains where a verdict or a sum changed."""
        nodes = snapshot.nodes
        if isinstance(state, _FilterState):
            moved = state.recount(nodes, rows)
        else:
            preferences: _ScoreState = state
            moved = preferences.counts.recount(pod_index(nodes), rows)
            if moved is None:
                preferences.counts.update(nodes, pod_index(nodes), np.array(rows, dtype=np.int64))
        if moved is None:
            return None
        return rows_moved(nodes, moved)

    def is_idle(self, state: State, snapshot: Snapshot) -> bool:
        """As long as neither the pod nor one that stands has terms."""
        known: _FilterState | _ScoreState = state
        return snapshot.nodes.concerned_pods == 0 and known.silent

    def standing(self, state: State) -> Status:
        """Scores are skipped as long as nothing matches."""
        return SKIP if isinstance(state, _ScoreState) and not state.counts.any_match else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that come, go or change labels; nodes that change domains."""
        return affinity_events()


def _keys(terms: Iterable[Term]) -> set[str]:
    return {term.key for term in terms}


def _selected(index: PodIndex, terms: Iterable[Term]) -> Iterable[PodKind]:
    return index.selected_by([term.selector for term in terms])


def _same(before: _Tables, after: _Tables) -> bool:
    return before.keys() == after.keys() and all(np.array_equal(table, after[key]) for key, table in before.items())
