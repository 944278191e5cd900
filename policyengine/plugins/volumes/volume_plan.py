"""VolumeBinding between Reserve and Bind: the patches of volumes and claims, and whether all claims are bound.

A static volume gets its `claimRef`; a claim to be provisioned gets the name of the node. The volume controller and
the provisioners do the rest. They remove the node's name from the claim if they cannot. Source: kube-scheduler's
volume binder (volumebinding/binder.go: AssumePodVolumes, bindAPIUpdate, checkBindings) and component-helpers'
GetBindVolumeToClaim, v1.36.

A patch that the object already shows is not written again: another pod of the same claim, or an earlier attempt, has
written it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from policyengine.cluster.object_store import ClusterObject
from policyengine.cluster.objects import ObjectMeta
from policyengine.cluster.storage_objects import ObjectReference, PersistentVolume, PersistentVolumeClaim
from policyengine.cluster.view import Snapshot
from policyengine.framework.reservation import ObjectPatch, Plan
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.plugins.volumes.volume_claims import (
    BOUND_BY_CONTROLLER,
    CLAIM,
    SELECTED_NODE,
    VOLUME,
    find_claim,
    is_fully_bound,
)
from policyengine.plugins.volumes.volume_matching import is_bound_to, reach, reach_mask

Bound = tuple[PersistentVolumeClaim, str]
"""A claim, and the name of the static volume it takes."""

_WAIT = Status(Code.WAIT)


Decided = tuple[tuple[tuple[str, str, str], ...], tuple[tuple[str, str], ...]]
"""The decisions behind a plan: (namespace and name of a claim, name of its volume) of each that is bound; (namespace,
name) of the claims whose volume is to be made."""


def make_plan(
    bound: Sequence[Bound],
    provided: Sequence[PersistentVolumeClaim],
    node: str,
    snapshot: Snapshot,
    timeout: float,
) -> Plan:
    """The assumed objects and the patches for these decisions about a pod's claims."""
    assumed: list[tuple[str, ClusterObject]] = []
    patches: list[ObjectPatch] = []
    for claim, name in bound:
        volume = snapshot.objects(PersistentVolume).get(name)
        assert volume is not None, f"volume `{name}` was matched and is not there"
        if volume.spec.claim_ref is None or volume.spec.claim_ref.uid != claim.metadata.uid:
            assumed.append((VOLUME, _taken(volume, claim)))
            patches.append(_take(volume, claim))
    for claim in provided:
        if claim.metadata.annotations.get(SELECTED_NODE) != node:
            assumed.append((CLAIM, replace(claim, metadata=_annotated(claim, SELECTED_NODE, node))))
            patches.append(_patch(CLAIM, claim, {"metadata": {"annotations": {SELECTED_NODE: node}}}))
    taken = tuple((claim.metadata.namespace, claim.metadata.name, name) for claim, name in bound)
    decided: Decided = taken, tuple((claim.metadata.namespace, claim.metadata.name) for claim in provided)
    return Plan(tuple(assumed), tuple(patches), timeout, "binding volumes: context deadline exceeded", decided)


def check_plan(plan: Plan, node: str, snapshot: Snapshot) -> Status:
    """SUCCESS once every claim is bound to a volume that the node reaches; an Error once that is impossible."""
    decided: Decided = plan.state
    bound, provided = decided
    answers = [_bound_yet(*one, node, snapshot) for one in bound]
    answers += [_provided_yet(*one, node, snapshot) for one in provided]
    for answer in answers:
        if isinstance(answer, str):
            return Status(Code.ERROR, (f"binding volumes: {answer}",))
    return SUCCESS if all(answers) else _WAIT


def _bound_yet(namespace: str, name: str, volume_name: str, node: str, snapshot: Snapshot) -> bool | str:
    volume = snapshot.objects(PersistentVolume).get(volume_name)
    if volume is None:
        return f'failed to check binding: persistentvolumes "{volume_name}" not found'
    claim = find_claim(snapshot, namespace, name)
    if claim is None:
        return f'failed to check binding: persistentvolumeclaims "{namespace}/{name}" not found'
    far = _out_of_reach(volume, node, snapshot)
    if far:
        return far
    if volume.spec.claim_ref is None or volume.spec.claim_ref.uid != claim.metadata.uid:
        return f'ClaimRef got reset for pv "{volume_name}"'
    if claim.spec.volume_name not in ("", volume_name):  # kube-scheduler does not look, and binds the pod all the same
        return f'persistentvolumeclaim "{namespace}/{name}" was bound to pv "{claim.spec.volume_name}" meanwhile'
    return is_fully_bound(claim)


def _provided_yet(namespace: str, name: str, node: str, snapshot: Snapshot) -> bool | str:
    claim = find_claim(snapshot, namespace, name)
    if claim is None:
        return f'failed to check provisioning pvc: persistentvolumeclaims "{namespace}/{name}" not found'
    if not claim.metadata.annotations:
        return f'selectedNode annotation reset for PVC "{name}"'
    if claim.metadata.annotations.get(SELECTED_NODE) != node:
        return f'provisioning failed for PVC "{name}"'
    if claim.spec.volume_name:
        volume = snapshot.objects(PersistentVolume).get(claim.spec.volume_name)
        if volume is None:
            return False  # the watch of claims may be ahead of that of volumes
        far = _out_of_reach(volume, node, snapshot)
        if far:
            return far
    return is_fully_bound(claim)


def _out_of_reach(volume: PersistentVolume, node: str, snapshot: Snapshot) -> str:
    row = snapshot.nodes.row_of.get(node)
    if row is None:
        return f'failed to get node "{node}": node "{node}" not found'
    if reach_mask(reach(volume), snapshot.nodes, np.array([row]))[0]:
        return ""
    return f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node}": no matching NodeSelectorTerms'


def _taken(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    meta = claim.metadata
    ref = ObjectReference(CLAIM, meta.namespace, meta.name, meta.uid)
    metadata = volume.metadata if is_bound_to(volume, claim) else _annotated(volume, BOUND_BY_CONTROLLER, "yes")
    return replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=ref))


def _take(volume: PersistentVolume, claim: PersistentVolumeClaim) -> ObjectPatch:
    """A volume that its owner prebound to the claim by name only lacks the UID. It is not marked as bound by the
    controller, since it would then be released together with the claim."""
    meta = claim.metadata
    ref = {
        "kind": CLAIM,
        "apiVersion": "v1",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    patch: dict[str, object] = {"spec": {"claimRef": ref}}
    if not is_bound_to(volume, claim):
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return _patch(VOLUME, volume, patch)


def _annotated(item: ClusterObject, key: str, value: str) -> ObjectMeta:
    return replace(item.metadata, annotations={**item.metadata.annotations, key: value})


def _patch(kind: str, item: ClusterObject, patch: dict[str, object]) -> ObjectPatch:
    meta = item.metadata
    return ObjectPatch(kind, meta.namespace, meta.name, meta.uid, meta.resource_version, patch)
