"""VolumeBinding's score: how full the storage would be that the pod's claims take (KEP-4049).

Per storage class the utilisation is what the claims ask for / what the volumes they take can hold; for claims whose
volume is to be made, / what the driver reports to be left. A broken line over the utilisation gives the class its
score, 0..100; the mean over the classes, rounded, is the node's. Static volumes come before volumes to be made.

Behind kube-scheduler's gate StorageCapacityScoring, off by default; here the argument `shape` switches it on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import PersistentVolume, PersistentVolumeClaim
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.resources.scoring_strategy import read_line
from policyengine.plugins.volumes.volume_binding import PodClaims, VolumeBinding
from policyengine.plugins.volumes.volume_claims import class_name
from policyengine.plugins.volumes.volume_matching import Match, storage_of

Amounts = NDArray[np.int64]


def volume_binding(arguments: Mapping[str, Any]) -> VolumeBinding:
    """The plugin by VolumeBindingArgs: with a score where there is a `shape`."""
    return ScoringVolumeBinding(arguments) if arguments.get("shape") else VolumeBinding(arguments)


class ScoringVolumeBinding(VolumeBinding):
    """VolumeBinding that scores."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """VolumeBindingArgs. ValueError when the shape is malformed."""
        super().__init__(arguments)
        self._line = read_line(arguments["shape"])

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped where every claim is bound."""
        status, claims = self.pre_filter(pod, snapshot)
        if not status.is_success or not (claims.matched.claims or claims.provided):
            return SKIP, None
        return SUCCESS, claims

    def score(self, state: PodClaims, snapshot: Snapshot, rows: Rows) -> Amounts:
        """`int64[rows]`, 0..100."""
        scores = np.zeros(len(rows), dtype=np.int64)
        matches, which = state.matched.matches(snapshot.nodes, rows)
        for number, match in enumerate(matches):
            here = which == number
            if any(match):
                scores[here] = self._static(state, match, snapshot)
            else:
                scores[here] = self._dynamic(state, snapshot.nodes, rows[here])
        return scores

    def _static(self, claims: PodClaims, match: Match, snapshot: Snapshot) -> int:
        asked: dict[str, int] = defaultdict(int)
        held: dict[str, int] = defaultdict(int)
        for claim, name in zip(claims.matched.claims, match, strict=True):
            volume = snapshot.objects(PersistentVolume).get(name) if name is not None else None
            if volume is not None:
                asked[volume.spec.storage_class_name] += storage_of(claim.spec.resources.requests)
                held[volume.spec.storage_class_name] += storage_of(volume.spec.capacity)
        points = [int(self._points(asked[one], np.array([held[one]]))[0]) for one in held]
        return (2 * sum(points) + len(points)) // (2 * len(points))

    def _dynamic(self, claims: PodClaims, nodes: NodeTable, rows: Rows) -> Amounts:
        """A class counts at a node where capacity is reported for one of its claims."""
        to_make: dict[str, list[PersistentVolumeClaim]] = defaultdict(list)
        for claim in (*claims.provided, *claims.matched.claims):
            to_make[class_name(claim)].append(claim)
        total = np.zeros(len(rows), dtype=np.int64)
        classes = np.zeros(len(rows), dtype=np.int64)
        for group in to_make.values():
            asked = np.zeros(len(rows), dtype=np.int64)
            left = np.full(len(rows), -1, dtype=np.int64)
            for claim in group:
                provision = claims.provisions.get(claim.metadata.key)
                if provision is None:
                    continue
                reported = provision.capacity(nodes, rows)
                asked[reported >= 0] += storage_of(claim.spec.resources.requests)
                left = np.where(reported >= 0, reported, left)
            total += np.where(left >= 0, self._points(asked, np.maximum(left, 0)), 0)
            classes += left >= 0
        # Go rounds half away from zero; in integers, for what is never negative:
        safe = np.maximum(classes, 1)
        mean: Amounts = (2 * total + safe) // (2 * safe)
        return mean

    def _points(self, asked: Amounts | int, held: Amounts) -> Amounts:
        """Of one class; what is more than full counts as full."""
        full = (held == 0) | (asked > held)
        # Divided in Python's integers: a hundred times a large disk leaves 64 bits.
        shares = np.asarray(asked, dtype=object) * 100 // np.maximum(held, 1).astype(object)
        return self._line[np.where(full, 100, shares).astype(np.int64)]
