"""What the documentation says the volume plugins do, one node at a time, on plain API objects.

Source: concepts/storage (volumes, persistent volumes, storage classes, storage capacity, storage limits). Naive on
purpose, and sharing nothing with the plugins.
"""

from __future__ import annotations

from typing import Any

from tests.plugins.oracle import UNRESOLVABLE, UNSCHEDULABLE, Refusal, amount, labels_of, selects, term_matches

Json = dict[str, Any]

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA = "failure-domain.beta.kubernetes.io/"
TOPOLOGY = "topology.kubernetes.io/"
CSI_OF_DISK = {
    "gcePersistentDisk": ("pd.csi.storage.gke.io", "pdName"),
    "awsElasticBlockStore": ("ebs.csi.aws.com", "volumeID"),
}


class Storage:
    """The objects by name."""

    def __init__(self, objects: Json) -> None:
        self.nodes: list[Json] = objects["nodes"]
        self.pods: list[Json] = objects["pods"]
        self.claims = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in objects["claims"]}
        self.volumes = {one["metadata"]["name"]: one for one in objects["volumes"]}
        self.classes = {one["metadata"]["name"]: one for one in objects["classes"]}
        self.csi_nodes = {one["metadata"]["name"]: one for one in objects["csiNodes"]}
        self.drivers = {one["metadata"]["name"]: one for one in objects["csiDrivers"]}
        self.capacities: list[Json] = objects["capacities"]
        self.attachments: list[Json] = objects["attachments"]

    def on(self, node: Json) -> list[Json]:
        return [pod for pod in self.pods if pod["spec"]["nodeName"] == node["metadata"]["name"]]

    def claim_of(self, pod: Json, name: str) -> Json | None:
        return self.claims.get((pod["metadata"]["namespace"], name))


def claim_names(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes", [])
    return [one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one]


# --- before any node


def refused_as_a_whole(storage: Storage, pod: Json) -> Refusal | None:
    claims = []
    for name in claim_names(pod):
        claim = storage.claim_of(pod, name)
        if claim is None:
            return "VolumeRestrictions", UNRESOLVABLE, (f'persistentvolumeclaim "{name}" not found',)
        claims.append(claim)
    for claim in claims:
        name = claim["metadata"]["name"]
        if claim["status"]["phase"] == "Lost":
            reason = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
            return "VolumeBinding", UNRESOLVABLE, (f'{reason}"{claim["spec"]["volumeName"]}"',)
        if "deletionTimestamp" in claim["metadata"]:
            return "VolumeBinding", UNRESOLVABLE, (f'persistentvolumeclaim "{name}" is being deleted',)
    if any(not is_bound(claim) and not waits(storage, claim) for claim in claims):
        return "VolumeBinding", UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",)
    for claim in claims:
        volume = claim["spec"].get("volumeName")
        if volume and volume not in storage.volumes:
            return "VolumeZone", UNRESOLVABLE, (f'persistentvolume "{volume}" not found',)
    return None


def is_bound(claim: Json) -> bool:
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in claim["metadata"]["annotations"]


def waits(storage: Storage, claim: Json) -> bool:
    found = storage.classes.get(claim["spec"]["storageClassName"])
    is_late = found is not None and found["volumeBindingMode"] == "WaitForFirstConsumer"
    return is_late and not claim["spec"].get("volumeName")


# --- node by node, in order


def volume_restrictions(storage: Storage, pod: Json, node: Json) -> Refusal | None:
    disks = pod["spec"].get("volumes", [])
    for other in storage.on(node):
        if any(cannot_share(one, theirs) for one in disks for theirs in other["spec"].get("volumes", [])):
            return "VolumeRestrictions", UNSCHEDULABLE, ("node(s) had no available disk",)
    for name in claim_names(pod):
        claim = storage.claim_of(pod, name)
        alone = claim is not None and "ReadWriteOncePod" in claim["spec"]["accessModes"]
        users = [other for other in storage.pods if name in claim_names(other)]
        if alone and any(other["metadata"]["namespace"] == pod["metadata"]["namespace"] for other in users):
            reason = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use"
            return "VolumeRestrictions", UNSCHEDULABLE, (f"{reason} by another pod",)
    return None


def cannot_share(one: Json, other: Json) -> bool:
    for kind, same in (
        ("gcePersistentDisk", ("pdName",)),
        ("awsElasticBlockStore", ("volumeID",)),
        ("iscsi", ("iqn",)),
        ("rbd", ("pool", "image", "monitors")),
    ):
        if kind in one and kind in other and all(one[kind][key] == other[kind][key] for key in same):
            only_read = one[kind].get("readOnly") and other[kind].get("readOnly")
            return kind == "awsElasticBlockStore" or not only_read
    return False


def node_volume_limits(storage: Storage, pod: Json, node: Json) -> Refusal | None:
    csi_node = storage.csi_nodes.get(node["metadata"]["name"])
    limits = (
        {} if csi_node is None else {one["name"]: one["allocatable"]["count"] for one in csi_node["spec"]["drivers"]}
    )
    mounted = {handle for other in storage.on(node) for handle in handles(storage, other)}
    new = handles(storage, pod) - mounted
    attached = {
        (one["spec"]["attacher"], volume["spec"]["csi"]["volumeHandle"])
        for one in storage.attachments
        if one["spec"]["nodeName"] == node["metadata"]["name"]
        and (volume := storage.volumes.get(one["spec"]["source"]["persistentVolumeName"])) is not None
    }
    for driver, limit in limits.items():
        used = sum(handle[0] == driver for handle in mounted | attached)
        wanted = sum(handle[0] == driver for handle in new)
        if wanted and used + wanted > limit:
            return "NodeVolumeLimits", UNSCHEDULABLE, ("node(s) exceed max volume count",)
    return None


def handles(storage: Storage, pod: Json) -> set[tuple[str, str]]:
    """(driver, volume) of all the pod's volumes that a CSI driver attaches; one to be made is its claim."""
    found: set[tuple[str, str]] = set()
    for name in claim_names(pod):
        claim = storage.claim_of(pod, name)
        if claim is None:
            continue
        volume = storage.volumes.get(claim["spec"].get("volumeName", ""))
        storage_class = storage.classes.get(claim["spec"]["storageClassName"])
        if volume is not None:
            found.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
        elif storage_class is not None:
            found.add((storage_class["provisioner"], f"{claim['metadata']['namespace']}/{name} (to be made)"))
    for one in pod["spec"].get("volumes", []):
        found |= {(driver, one[kind][key]) for kind, (driver, key) in CSI_OF_DISK.items() if kind in one}
    return found


def volume_binding(storage: Storage, pod: Json, node: Json) -> Refusal | None:
    reasons: list[str] = []
    claims = [claim for name in claim_names(pod) if (claim := storage.claim_of(pod, name)) is not None]
    if not all(reaches(node, storage.volumes[one["spec"]["volumeName"]]) for one in claims if is_bound(one)):
        reasons.append("node(s) didn't match PersistentVolume's node affinity")
    reason = unbound(storage, [one for one in claims if not is_bound(one)], node)
    reasons += [reason] if reason else []
    return ("VolumeBinding", UNRESOLVABLE, tuple(sorted(reasons))) if reasons else None


def reaches(node: Json, volume: Json) -> bool:
    required = volume["spec"].get("nodeAffinity", {}).get("required")
    return required is None or any(term_matches(term, node) for term in required["nodeSelectorTerms"])


def unbound(storage: Storage, claims: list[Json], node: Json) -> str:
    """Why the node will not do for claims that wait for their first consumer; "" where it does."""
    nothing = "node(s) didn't find available persistent volumes to bind"
    selected = [one for one in claims if SELECTED_NODE in one["metadata"]["annotations"]]
    if any(one["metadata"]["annotations"][SELECTED_NODE] != node["metadata"]["name"] for one in selected):
        return nothing
    taken: list[str] = []
    unmatched: list[Json] = []
    for claim in sorted((one for one in claims if one not in selected), key=size):
        volume = smallest(storage, claim, node, taken)
        if volume is None:
            unmatched.append(claim)
        else:
            taken.append(volume)
    for claim in [*selected, *unmatched]:
        problem = cannot_provision(storage, claim, node)
        if problem:
            return nothing if problem == "class" else "node(s) did not have enough free storage"
    return ""


def size(claim: Json) -> int:
    return amount(claim["spec"]["resources"]["requests"]["storage"])


def smallest(storage: Storage, claim: Json, node: Json, taken: list[str]) -> str | None:
    """The smallest volume there is for the claim; one that is meant for it before any other."""
    fitting: list[tuple[int, str]] = []
    for name, volume in storage.volumes.items():
        spec, meant = volume["spec"], is_meant(volume, claim)
        room = amount(spec["capacity"]["storage"])
        of_class = spec["storageClassName"] == claim["spec"]["storageClassName"]
        if name in taken or not of_class or room < size(claim) or ("claimRef" in spec and not meant):
            continue
        if meant:
            return name if reaches(node, volume) else None
        chosen = selects(claim["spec"].get("selector", {}), labels_of(volume))
        modes = set(claim["spec"]["accessModes"]) <= set(spec["accessModes"])
        if volume["status"]["phase"] == "Available" and chosen and modes and reaches(node, volume):
            fitting.append((room, name))
    return min(fitting, key=lambda one: one[0])[1] if fitting else None


def is_meant(volume: Json, claim: Json) -> bool:
    bound, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    named = bound is not None and (bound["namespace"], bound["name"]) == (metadata["namespace"], metadata["name"])
    return named and bound["uid"] in ("", metadata["uid"])


def cannot_provision(storage: Storage, claim: Json, node: Json) -> str:
    found = storage.classes[claim["spec"]["storageClassName"]]
    allowed = found.get("allowedTopologies", [])
    near = not allowed or any(
        all(labels_of(node).get(one["key"]) in one["values"] for one in term["matchLabelExpressions"])
        for term in allowed
    )
    if found["provisioner"] == "kubernetes.io/no-provisioner" or not near:
        return "class"
    driver = storage.drivers.get(found["provisioner"])
    if driver is None or not driver["spec"]["storageCapacity"]:
        return ""
    for one in storage.capacities:
        enough = amount(one.get("maximumVolumeSize", one["capacity"])) >= size(claim)
        here = selects(one["nodeTopology"], labels_of(node))
        if one["storageClassName"] == found["metadata"]["name"] and enough and here:
            return ""
    return "capacity"


def volume_zone(storage: Storage, pod: Json, node: Json) -> Refusal | None:
    places = [BETA + "zone", BETA + "region", TOPOLOGY + "zone", TOPOLOGY + "region"]
    if not any(place in labels_of(node) for place in places):
        return None
    for name in claim_names(pod):
        claim = storage.claim_of(pod, name)
        volume = None if claim is None else storage.volumes.get(claim["spec"].get("volumeName", ""))
        for place in places if volume is not None else ():
            wanted = labels_of(volume or {}).get(place)
            here = labels_of(node).get(place, labels_of(node).get(place.replace(BETA, TOPOLOGY)))
            if wanted is not None and here not in wanted.split("__"):
                return "VolumeZone", UNRESOLVABLE, ("node(s) had no available volume zone",)
    return None


FILTERS = (volume_restrictions, node_volume_limits, volume_binding, volume_zone)
