"""How kinds are created and updated: what the server resets, counts and fills in.

`CREATE` and `UPDATE` have a row for each kind that differs from the generic way. The facts are those of pkg/registry's
strategies.
"""

from collections.abc import Callable
from ipaddress import IPv4Address
from itertools import count

from policyengine import quantity
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object, Store, child, metadata, objects, texts

FIRST_ADDRESS = IPv4Address("10.0.0.10")
KEEPS_STATUS_ON_CREATE = frozenset({"Node"})


def condition(obj: Object, type_: str) -> Object | None:
    """The status condition of a type."""
    return next((c for c in objects(child(obj, "status").get("conditions")) if c.get("type") == type_), None)


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, by the containers' cpu and memory (pod-level resources win)."""
    rows = [child(spec, "resources")] if child(spec, "resources") else []
    if not rows:
        rows = [child(c, "resources") for g in ("initContainers", "containers") for c in objects(spec.get(g))]
    any_set, guaranteed = False, True
    for row in rows:
        requests, limits = child(row, "requests"), child(row, "limits")
        for name in ("cpu", "memory"):
            request, limit = _amount(requests, name), _amount(limits, name)
            any_set = any_set or bool(request or limit)
            guaranteed = guaranteed and bool(limit) and (request or limit) == limit
    return "BestEffort" if not any_set else "Guaranteed" if guaranteed else "Burstable"


def _amount(held: Object, name: str) -> Json:
    text = held.get(name)
    if text is None or quantity.nanos(str(text)) == 0:
        return None
    return text


def _tolerate_node_trouble(spec: Object) -> None:
    """Admission's DefaultTolerationSeconds: stay five minutes on a node that is not ready or unreachable."""
    held = objects(spec.get("tolerations"))
    added: list[Json] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not any(t.get("key", "") in (key, "") and t.get("effect", "") in ("NoExecute", "") for t in held)
    ]
    if added:
        spec["tolerations"] = [*held, *added]


def _create_pod(obj: Object, now: str) -> None:
    spec = child(obj, "spec")
    _tolerate_node_trouble(spec)
    status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": now,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    obj["status"] = status


def _update_pod(new: Object, old: Object) -> None:
    status = child(new, "status")
    _tolerate_node_trouble(child(new, "spec"))
    if status and not status.get("qosClass"):
        status["qosClass"] = child(old, "status").get("qosClass")
    gate = condition(new, "PodScheduled")
    gated = child(old, "spec").get("schedulingGates")
    if gated and not child(new, "spec").get("schedulingGates") and gate and gate.get("reason") == "SchedulingGated":
        # The scheduler says itself what comes of a pod whose last gate fell.
        kept = [c for c in objects(status.get("conditions")) if c is not gate]
        if kept:
            status["conditions"] = list(kept)
        else:
            status.pop("conditions", None)


def _create_namespace(obj: Object, now: str) -> None:
    obj["status"] = {"phase": "Active"}
    spec = child(obj, "spec")
    names: list[Json] = [*texts(spec.get("finalizers"))]
    obj["spec"] = {**spec, "finalizers": names if "kubernetes" in names else [*names, "kubernetes"]}


def _update_namespace(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]


def _create_crd(obj: Object, now: str) -> None:
    stored = [v.get("name") for v in objects(child(obj, "spec").get("versions")) if v.get("storage")]
    names: Object = {"plural": "", "kind": ""}
    obj["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored}


def _create_volume(obj: Object, now: str) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}


def give_address(service: Object, store: Store) -> None:
    """Give a new Service the lowest cluster IP that is free, unless it names one or has none."""
    spec = child(service, "spec")
    if spec.get("type") == "ExternalName":
        return
    entries = store.collection(("", "services")).entries.values()
    used = {child(entry.object(), "spec").get("clusterIP") for entry in entries}
    free = (str(FIRST_ADDRESS + number) for number in count())
    spec["clusterIP"] = spec.get("clusterIP") or next(one for one in free if one not in used)
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")
JOB_UID = ("controller-uid", "batch.kubernetes.io/controller-uid")


def _create_job(obj: Object, now: str) -> None:
    """A job selects its pods by its own UID, unless its author does it by hand."""
    meta, spec = metadata(obj), child(obj, "spec")
    if spec.get("manualSelector"):
        return
    template = child(spec, "template")
    about = template.setdefault("metadata", {})
    assert isinstance(about, dict)
    own: Object = {**dict.fromkeys(JOB_NAME, meta.get("name") or ""), **dict.fromkeys(JOB_UID, meta["uid"])}
    labels = about.get("labels") or {}
    assert isinstance(labels, dict)
    for name, value in own.items():
        labels.setdefault(name, value)
    about["labels"] = labels
    selector = child(spec, "selector")
    spec["selector"] = {**selector, "matchLabels": {JOB_UID[1]: meta["uid"], **child(selector, "matchLabels")}}
    if not meta.get("labels"):
        meta["labels"] = labels


def _empty_is_null(*path: str) -> Callable[[Object, str], None]:
    """Storage knows no empty list, only none; fields that are always shown then read null."""

    def create(obj: Object, now: str) -> None:
        holder = child(obj, *path[:-1])
        holder[path[-1]] = holder.get(path[-1]) or None

    return create


CREATE: dict[str, Callable[[Object, str], None]] = {
    "Pod": _create_pod,
    "Namespace": _create_namespace,
    "CustomResourceDefinition": _create_crd,
    "PersistentVolume": _create_volume,
    "Job": _create_job,
    "CSINode": _empty_is_null("spec", "drivers"),
    "Role": _empty_is_null("rules"),
    "ClusterRole": _empty_is_null("rules"),
}
"""What the server does to a new object of a kind; the second argument is the time."""
UPDATE: dict[str, Callable[[Object, Object], None]] = {"Pod": _update_pod, "Namespace": _update_namespace}
"""What it does to a changed one, given the one before."""


def count_generation(kind: Kind, new: Object, old: Object | None) -> None:
    """`metadata.generation`: 1 at creation, one more for each change of anything but metadata and status."""
    if "generation" not in kind.traits:
        return
    if old is None:
        metadata(new)["generation"] = 1
        return
    before = metadata(old).get("generation")
    current = before if isinstance(before, int) else 0
    desired = {k: v for k, v in new.items() if k not in ("metadata", "status")}
    held = {k: v for k, v in old.items() if k not in ("metadata", "status")}
    if desired != held:
        current += 1
    if current:
        metadata(new)["generation"] = current
