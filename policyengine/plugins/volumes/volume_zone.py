"""VolumeZone: a bound volume labelled with zones or regions is reached only from there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import PersistentVolume
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.selectors.label_selector import Requirement
from policyengine.plugins.selectors.node_selector import LabelTest, Mask
from policyengine.plugins.volumes.volume_claims import (
    CLAIM,
    CLASS,
    VOLUME,
    WAIT_FOR_FIRST_CONSUMER,
    claim_refs,
    class_name,
    class_of,
    find_claim,
    names_claim,
    not_found,
    waits_for_consumer,
)

_UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_REFUSALS: Final = (Refusal(_UNRESOLVABLE, ("node(s) had no available volume zone",)),)
_MODERN: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The labels read, of volumes and of nodes -> the label read instead if a node lacks it."""

Topology = tuple[str, frozenset[str]]
"""(label, the values that will do)"""


def topologies(volume: PersistentVolume) -> list[Topology]:
    """What the volume's labels ask of a node; values are separated by `__`. A malformed label asks nothing."""
    found: list[Topology] = []
    for key in _MODERN:
        if key in volume.metadata.labels:
            values = [value.strip() for value in volume.metadata.labels[key].split("__")]
            if all(values):
                found.append((key, frozenset(values)))
    return found


class _Zones:
    """The tests of one pod, per topology: the label itself, its modern form, and which of them a node has."""

    def __init__(self, wanted: Sequence[Topology]) -> None:
        self.any_label = [LabelTest(Requirement(key, "Exists", frozenset())) for key in _MODERN]
        self.tests = [
            (
                LabelTest(Requirement(key, "Exists", frozenset())),
                LabelTest(Requirement(key, "In", values)),
                LabelTest(Requirement(_MODERN[key], "In", values)),
            )
            for key, values in wanted
        ]


class VolumeZone:
    """Reads the pod's claims, the labels of their volumes, and of the nodes."""

    name = "VolumeZone"
    reads = Reads.NODE
    kinds = (CLAIM, VOLUME, CLASS)

    def signature(self, pod: PodInfo) -> Hashable:
        """Namespace and claims."""
        refs = claim_refs(pod, with_ephemeral=False)
        return (pod.namespace, tuple(refs)) if refs else UNCONCERNED

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped if no volume has a zone or region; an absent object refuses the pod."""
        wanted: list[Topology] = []
        for ref in claim_refs(pod, with_ephemeral=False):
            answer = _topologies_of_claim(snapshot, pod.namespace, ref.name)
            if isinstance(answer, str):
                return Status(_UNRESOLVABLE, (answer,)), None
            wanted += answer
        return (SUCCESS, _Zones(wanted)) if wanted else (SKIP, None)

    def filter(self, state: _Zones, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """A node without any of the labels passes, as in a cluster of a single zone."""
        nodes = snapshot.nodes
        labelled: Mask = np.zeros(len(rows), dtype=np.bool_)
        for test in state.any_label:
            labelled |= test.mask(nodes, rows)
        refused: Mask = np.zeros(len(rows), dtype=np.bool_)
        for has, matches, modern in state.tests:
            fits = np.where(has.mask(nodes, rows), matches.mask(nodes, rows), modern.mask(nodes, rows))
            refused |= ~fits
        return Verdicts((refused & labelled).astype(np.int16), _REFUSALS)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Claims that come or are bound, volumes that come or move, classes that wait, nodes that come or move."""
        add, update = ActionType.ADD, ActionType.UPDATE
        return (
            on(Resource.STORAGE_CLASS, add, lambda _, __, new: new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER),
            on(Resource.NODE, add | ActionType.UPDATE_NODE_LABEL),
            on(Resource.PERSISTENT_VOLUME_CLAIM, add | update, lambda pod, _, new: names_claim(pod, new, False)),
            on(Resource.PERSISTENT_VOLUME, add | update, changed=lambda old, new: topologies(old) != topologies(new)),
        )


def _topologies_of_claim(snapshot: Snapshot, namespace: str, name: str) -> list[Topology] | str:
    """What the claim's volume asks of nodes, nothing while it waits for its first consumer; or why it cannot be
    told."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = find_claim(snapshot, namespace, name)
    if claim is None:
        return not_found("persistentvolumeclaim", name)
    if claim.spec.volume_name:
        volume = snapshot.objects(PersistentVolume).get(claim.spec.volume_name)
        if volume is None:
            return not_found("persistentvolume", claim.spec.volume_name)
        return topologies(volume)
    wanted, storage = class_name(claim), class_of(claim, snapshot)
    if not wanted:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    if storage is None:
        return not_found("storageclass.storage.k8s.io", wanted)
    waits = waits_for_consumer(storage)
    if isinstance(waits, str):
        return waits
    return [] if waits else "PersistentVolume had no name"
