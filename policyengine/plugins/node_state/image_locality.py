"""ImageLocality: nodes that have the pod's images already.

Σ size · (nodes having the image / all nodes), each term truncated; clamped to [23 MiB, 1000 MiB · containers] and
mapped linearly to 0..100. Init containers and image volumes count; volumes do not raise the upper bound.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, Reads
from policyengine.framework.status import SUCCESS, Rows, State, Status

_MIB: Final = 1024 * 1024
MIN_THRESHOLD: Final = 23 * _MIB
MAX_CONTAINER_THRESHOLD: Final = 1000 * _MIB


class _Wanted:
    """The pod's images, and how many nodes have each: all rows change with that share."""

    def __init__(self, images: tuple[str, ...], containers: int) -> None:
        self.images = images
        self.containers = containers
        self.spread: tuple[int, tuple[int, ...]] = (0, ())

    def look(self, snapshot: Snapshot) -> bool:
        """Count again; whether anything is different now."""
        nodes = snapshot.nodes
        counts = tuple(len(nodes.images.holders(image)) for image in self.images)
        spread = (nodes.n if any(counts) else 0, counts)
        changed = spread != self.spread
        self.spread = spread
        return changed


class ImageLocality:
    """Reads the pod's images, and those of all nodes."""

    name = "ImageLocality"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        """The images, and the number of containers."""
        return pod.shape.images, _containers(pod)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Never skipped."""
        wanted = _Wanted(pod.shape.images, _containers(pod))
        wanted.look(snapshot)
        return SUCCESS, wanted

    def update(self, state: _Wanted, snapshot: Snapshot, changed: Rows) -> tuple[Status, Rows | None]:
        """All rows where the share of nodes having an image changed, else those whose node changed."""
        if state.look(snapshot):
            return SUCCESS, None
        return SUCCESS, changed if any(state.spread[1]) else changed[:0]

    def score(self, state: _Wanted, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """0..100."""
        nodes, counts = state.spread
        total = np.zeros(len(rows), dtype=np.int64)
        for image, count in zip(state.images, counts, strict=True):
            if count:
                sizes = snapshot.nodes.images.sizes(image, snapshot.nodes.n)[rows]
                total += (sizes * (count / nodes)).astype(np.int64)
        highest = MAX_CONTAINER_THRESHOLD * state.containers
        sums = np.clip(total, MIN_THRESHOLD, max(highest, MIN_THRESHOLD + 1))
        return MAX_NODE_SCORE * (sums - MIN_THRESHOLD) // max(highest - MIN_THRESHOLD, 1)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """It never rejects."""
        return ()


def _containers(pod: PodInfo) -> int:
    return len(pod.shape.spec.containers) + len(pod.shape.spec.init_containers)
