"""NodeAffinity: nodeSelector, required and preferred node affinity, and the affinity an operator adds for all.

Score: the weights of the matching preferred terms, 100·s/max.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_objects import Node, NodeSelector
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import NodeAffinity as Affinity
from policyengine.cluster.pod_shape import PodShape
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads, Scores, default_normalize
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.selectors.node_selector import (
    NAME_FIELD,
    Preferences,
    Selector,
    compile_preferences,
    compile_selector,
    required_affinity,
    required_key,
    required_selectors,
)

_UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_ENFORCED, _POD = 1, 2
_REFUSALS: Final = (
    Refusal(_UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",)),
    Refusal(_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)),
)
_CONFLICT: Final = Status(_UNRESOLVABLE, ("pod affinity terms conflict",))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a shape asks of nodes; `required` is empty where it requires nothing."""

    required: tuple[Selector, ...]
    names: frozenset[str] | None
    """The only nodes the required terms can mean, where every term names some."""
    preferred: Preferences | None
    key: Hashable
    """Equal for shapes that ask the same; None for those that ask nothing."""


def _wanted(shape: PodShape) -> _Wanted:
    spec = shape.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    selector = required_affinity(spec)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    required = required_selectors(spec)
    return _Wanted(
        required,
        _named(selector) if selector is not None else None,
        compile_preferences(preferred) if preferred else None,
        (required_key(spec), preferred) if required or preferred else None,
    )


def _named(selector: NodeSelector) -> frozenset[str] | None:
    """The union over terms of the names each one asks for; None where a term asks for none."""
    names: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        asked = [
            frozenset(field.values) for field in term.match_fields if field.key == NAME_FIELD and field.operator == "In"
        ]
        if not asked:
            return None
        names |= frozenset.intersection(*asked)
    return names if selector.node_selector_terms else None


class NodeAffinity:
    """Reads the pod's nodeSelector and node affinity, and the labels and names of the nodes."""

    name = "NodeAffinity"
    reads = Reads.NODE
    arguments: Final = schema_of(
        addedAffinity=schema_of(
            requiredDuringSchedulingIgnoredDuringExecution=schema_of(
                "nodeSelectorTerms", nodeSelectorTerms={"type": "array"}
            ),
            preferredDuringSchedulingIgnoredDuringExecution={"type": "array"},
        )
    )

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """`addedAffinity` as in NodeAffinityArgs. ValueError when it cannot be compiled."""
        added = (arguments or {}).get("addedAffinity")
        affinity = decode(Affinity, added) if added else Affinity()
        required = affinity.required_during_scheduling_ignored_during_execution
        preferred = affinity.preferred_during_scheduling_ignored_during_execution
        self._added = compile_selector(required) if required is not None else None
        self._added_preferred = compile_preferences(preferred) if preferred else None
        for compiled in (self._added, self._added_preferred):
            if compiled is not None and compiled.problems:
                raise ValueError(f"NodeAffinity: addedAffinity: {compiled.problems[0]}")
        self._adds = self._added is not None or self._added_preferred is not None
        self._wanted = lru_cache(maxsize=4096)(_wanted)
        """The plugin's own: what tests labels knows the ids of one node table."""

    def signature(self, pod: PodInfo) -> Hashable:
        """nodeSelector, required and preferred terms."""
        spec = pod.shape.spec
        key = self._wanted(pod.shape).key if spec.affinity is not None or spec.node_selector else None
        return UNCONCERNED if key is None and not self._adds else key

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped where nothing is required. Terms that name different nodes at once refuse the pod, and so does
        a malformed preferred term, which no node could be scored by."""
        wanted = self._wanted(pod.shape)
        if wanted.preferred is not None and wanted.preferred.problems:
            reason = f"preferred node affinity: {wanted.preferred.problems[0]}"
            return Status(_UNRESOLVABLE, (reason,)), None
        if not wanted.required and self._added is None:
            return SKIP, None
        if wanted.names is not None and not wanted.names:
            return _CONFLICT, None
        return SUCCESS, wanted

    def narrow(self, state: _Wanted) -> frozenset[str] | None:
        """The nodes named by matchFields, where every term names some."""
        return state.names

    def filter(self, state: _Wanted, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """The added affinity first, then the pod's own."""
        refused = np.zeros(len(rows), dtype=np.int16)
        for selector in state.required:
            refused[~selector.mask(snapshot.nodes, rows)] = _POD
        if self._added is not None:
            refused[~self._added.mask(snapshot.nodes, rows)] = _ENFORCED
        return Verdicts(refused, _REFUSALS)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped where nothing is preferred."""
        preferred = self._wanted(pod.shape).preferred
        if preferred is None and self._added_preferred is None:
            return SKIP, None
        return SUCCESS, [terms for terms in (preferred, self._added_preferred) if terms is not None]

    def score(self, state: list[Preferences], snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The weights of the terms that match."""
        total = np.zeros(len(rows), dtype=np.int64)
        for terms in state:
            total += terms.scores(snapshot.nodes, rows)
        return total

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """In proportion to the largest; 0 for all where none matches."""
        return default_normalize(scores)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new node, or labels that make one match."""
        return (on(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, self._became_matching),)

    def _became_matching(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        if new is None or (self._added is not None and not self._added.matches(new)):
            return False
        required = self._wanted(pod.shape).required
        if not all(selector.matches(new) for selector in required):
            return False
        if old is None or not all(selector.matches(old) for selector in required):
            return True
        # The pod's own terms matched before too; with an added affinity that has come to match, the node is new.
        return self._added is not None and not self._added.matches(old)
