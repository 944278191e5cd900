"""What keeps a pod from being tried at all: a name that nobody serves, gates, a gang that is not whole, a claim."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from policyengine.cluster.objects import ObjectMeta, OwnerReference, Resources
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.storage_objects import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
)
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import ReplicaSet
from policyengine.diagnosis import kubectl_commands
from policyengine.diagnosis.what_if import Attempt, Change, WhatIf
from policyengine.suggestion import nearest_first

NAMES: Final = 2
"""Scheduler names that are tried, the nearest first."""
CLASSES: Final = 3
"""Storage classes of which a missing claim is tried."""
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
CLAIM_SIZE: Final = "1Gi"
MADE: Final = 32
"""Members of a gang that are made at most."""
_SCALED: Final = {"StatefulSet": "statefulset", "ReplicaSet": "replicaset", "Deployment": "deployment"}


def served(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """A scheduler name that is served."""
    asked = attempt.pod.scheduler_name
    for place, name in enumerate(nearest_first(asked, what_if.served)[:NAMES]):
        detail = {"from": asked, "to": name}
        text = f"ask for the scheduler {name} instead of {asked}"
        change = Change("schedulerName", "", text, 1.1 + 0.1 * place, detail)
        yield attempt.with_spec(change, partial(replace, scheduler_name=name))


def ungated(attempt: Attempt) -> Iterator[Attempt]:
    """Without its scheduling gates."""
    pod = attempt.pod
    gates = [gate.name for gate in pod.shape.spec.scheduling_gates]
    if gates:
        text = f"remove the scheduling gate{'s' * (len(gates) > 1)} {', '.join(gates)}"
        line = kubectl_commands.patch("pod", attempt.names, pod.namespace, "merge", {"spec": {"schedulingGates": None}})
        change = Change("gate", "", text, 1.0, {"gates": gates}, line)
        yield attempt.with_spec(change, lambda spec: replace(spec, scheduling_gates=()))


def whole(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """The gang with the members that it lacks."""
    made = sum(isinstance(one.object, Pod) for one in attempt.made)
    count, pod, view = what_if.missing - made, attempt.pod, what_if.view
    if 0 < count <= MADE:
        text = f"add {count} member{'s' * (count > 1)} like {pod.key} to its gang"
        size = len(view.scheduling.members(pod)) + count
        taken = {other.key for other in view.pods.values()}
        names = (f"{pod.name}-more-{number}" for number in itertools.count(1))
        free = (name for name in names if f"{pod.namespace}/{name}" not in taken)
        change = Change("members", "", text, 1.2, {"like": pod.key, "count": count}, _scaled(view, pod, size))
        yield attempt.with_objects(change, "Pod", [_member(pod, name) for name in itertools.islice(free, count)])


def _member(like: PodInfo, name: str) -> Pod:
    metadata = ObjectMeta(
        name=name,
        namespace=like.namespace,
        uid=f"uid of {like.namespace}/{name}",
        labels=like.labels,
        annotations=like.annotations,
        owner_references=like.owner_references,
    )
    return Pod(metadata=metadata, spec=like.shape.spec)


def _scaled(view: ClusterView, pod: PodInfo, size: int) -> str:
    """The command that has the pod's owner make so many pods; a ReplicaSet's own owner, which would take it back."""
    owner: OwnerReference | None = pod.owner
    if owner is not None and owner.kind == "ReplicaSet":
        found = view.objects(ReplicaSet).get(f"{pod.namespace}/{owner.name}")
        owner = owner if found is None else found.metadata.controller or owner
    if owner is None or owner.kind not in _SCALED:
        return ""
    object_name = f"{_SCALED[owner.kind]}/{owner.name}"
    return kubectl_commands.line(
        "scale", object_name, f"--replicas={size}", names=[owner.name], namespace=pod.namespace
    )


def claimed(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """The claims that the pod names and nobody has made, of a class that provides volumes where the pod goes."""
    pod, view = attempt.pod, what_if.view
    there = {**view.objects(PersistentVolumeClaim), **{one.object.metadata.key: None for one in attempt.made}}
    named = (volume.persistent_volume_claim for volume in pod.shape.spec.volumes)
    claims = dict.fromkeys(claim.claim_name for claim in named if claim is not None)
    absent = [name for name in claims if f"{pod.namespace}/{name}" not in there]
    classes = [one for one in view.objects(StorageClass).values() if one.volume_binding_mode == "WaitForFirstConsumer"]
    classes.sort(key=lambda one: (one.metadata.annotations.get(_DEFAULT_CLASS) != "true", one.metadata.name))
    for place, class_ in enumerate(classes[:CLASSES] if absent else ()):
        changed, name = attempt, class_.metadata.name
        for claim in absent:
            detail = {"claim": f"{pod.namespace}/{claim}", "storageClass": name, "size": CLAIM_SIZE}
            item = PersistentVolumeClaim(
                metadata=ObjectMeta(name=claim, namespace=pod.namespace, uid=f"uid of {pod.namespace}/{claim}"),
                spec=PersistentVolumeClaimSpec(
                    storage_class_name=name,
                    access_modes=("ReadWriteOnce",),
                    resources=Resources(requests={"storage": CLAIM_SIZE}),
                ),
            )
            text = f"create the claim {claim} of class {name}"
            change = Change("claim", claim, text, 1.2 + 0.1 * place, detail)
            changed = changed.with_objects(change, "PersistentVolumeClaim", [item])
        yield changed
