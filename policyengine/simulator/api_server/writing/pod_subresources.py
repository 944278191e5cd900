"""Binding and evicting pods.

A binding does not check that the node exists or that the pod fits. It copies the node's zone and region labels
(PodTopologyLabels) and the Binding's annotations to the pod, and clears a nomination.

An eviction is a delete that asks the pod's disruption budget first (policy/v1 Eviction). A pod that has not started,
has finished or is being deleted goes whatever the budget. A budget that its controller has not seen yet, or that is
used up, answers 429.
"""

from policyengine.simulator.api_server.reading.selectors import from_object
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request, conflict, too_many_requests
from policyengine.simulator.api_server.storage import Collection, Entry, Object, child, metadata, objects
from policyengine.simulator.api_server.writing.call import Call, Caller
from policyengine.simulator.api_server.writing.deletion import DeleteOptions, delete, parse_delete_options
from policyengine.simulator.api_server.writing.rest_storage import Registry

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(registry: Registry, call: Call, binding: Object) -> None:
    """Bind one pod as the body says; raises 400, 404, 409 and 422."""
    meta = child(binding, "metadata")
    namespace, name = call.info.namespace, call.info.name or str(meta.get("name") or "")
    _check(name, namespace, binding)
    pods = registry.kinds.built_in("", "v1", "pods")
    before = registry.entry(pods, namespace, name)
    held = {"uid": before.uid, "resourceVersion": str(before.revision)}
    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if meta.get(field) and meta[field] != held[field]:
            why = (
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: "
                f"0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {meta[field]}, {what} in "
                f"object meta: {held[field]}"
            )
            raise conflict("pods", "", name, why)
    pod = before.object()
    _refuse(name, pod)
    _assign(registry, pod, binding)
    if not call.options.dry_run:
        registry.commit(pods, "bind", before, pod, call.caller, "binding")


def _assign(registry: Registry, pod: Object, binding: Object) -> None:
    given, meta = child(binding, "metadata"), metadata(pod)
    node = str(child(binding, "target")["name"])
    child(pod, "spec")["nodeName"] = node
    if child(given, "annotations"):
        meta["annotations"] = {**child(meta, "annotations"), **child(given, "annotations")}
    found = registry.store.collection(("", "nodes")).entries.get(node)
    of_node = child(found.object(), "metadata", "labels") if found else {}
    copied = {name: of_node[name] for name in TOPOLOGY_LABELS if name in of_node}
    labels = {**child(given, "labels"), **copied}
    if labels:
        meta["labels"] = {**child(meta, "labels"), **labels}
    status = child(pod, "status")
    status.pop("nominatedNodeName", None)
    set_condition(status, {"type": "PodScheduled", "status": "True"}, registry.now())


def _check(name: str, namespace: str, binding: Object) -> None:
    meta, target, kind = child(binding, "metadata"), child(binding, "target"), binding.get("kind")
    if kind not in (None, "", "Binding"):
        raise bad_request(
            f'{kind} in version "v1" cannot be handled as a Binding: converting (v1.{kind}) '
            "to (core.Binding): unknown conversion"
        )
    if meta.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    if meta.get("namespace") and meta["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    faults: list[str] = []
    if target.get("kind") not in (None, "", "Node"):
        faults.append(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        faults.append("target.name: Required value")
    if faults:
        # The real server returns the bare list of faults, which its generic wrapper makes a 500.
        raise ApiError(500, "", faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _refuse(name: str, pod: Object) -> None:
    spec = child(pod, "spec")
    if metadata(pod).get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise conflict("pods/binding", "", name, why)


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Put a pod condition in place; its transition time moves only with its status."""
    rows = objects(status.get("conditions"))
    at = next((at for at, held in enumerate(rows) if held.get("type") == condition["type"]), len(rows))
    unchanged = at < len(rows) and rows[at].get("status") == condition["status"]
    since = rows[at].get("lastTransitionTime") if unchanged else now
    rows[at : at + 1] = [{"lastProbeTime": None, "lastTransitionTime": since, **condition}]
    conditions: list[Json] = list(rows)
    status["conditions"] = conditions


REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
RETRY_SECONDS = 10


def evict(registry: Registry, call: Call, eviction: Object) -> None:
    """Evict one pod; raises 400, 404, 429 and 500."""
    namespace, name, caller = call.info.namespace, call.info.name, call.caller
    if child(eviction, "metadata").get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = parse_delete_options({}, child(eviction, "deleteOptions"))
    dry_run = call.options.dry_run or options.dry_run
    pods = registry.kinds.built_in("", "v1", "pods")
    entry = registry.entry(pods, namespace, name)
    pod = entry.object()
    going = child(pod, "status").get("phase") in ("Succeeded", "Failed", "Pending")
    if not going and not metadata(pod).get("deletionTimestamp"):
        _ask_budget(registry, namespace, name, pod, dry_run, caller)
    if dry_run:
        return
    condition: Object = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(child(pod, "status"), condition, registry.now())
    registry.commit(pods, "update", entry, pod, caller, "status")
    plain = DeleteOptions(options.grace, options.uid, "", options.propagation)
    delete(registry, pods, namespace, name, plain, caller)


def _ask_budget(registry: Registry, namespace: str, name: str, pod: Object, dry_run: bool, caller: Caller) -> None:
    kind = registry.kinds.built_in("policy", "v1", "poddisruptionbudgets")
    budgets = _budgets_of(registry.collection(kind), namespace, pod)
    if len(budgets) > 1:
        raise ApiError(500, "", TWO_BUDGETS)
    for entry in budgets:
        budget = entry.object()
        status = child(budget, "status")
        _check_budget(budget, entry.name)
        budget["status"] = {
            **status,
            "disruptionsAllowed": _count(status, "disruptionsAllowed") - 1,
            "disruptedPods": {**child(status, "disruptedPods"), name: registry.now()},
        }
        if not dry_run:
            registry.commit(kind, "update", entry, budget, caller, "status")


def _budgets_of(collection: Collection, namespace: str, pod: Object) -> list[Entry]:
    labels = {k: str(v) for k, v in child(metadata(pod), "labels").items()}
    entries = [collection.entries[key] for key in collection.keys(namespace)]
    return [one for one in entries if from_object(child(one.object(), "spec").get("selector")).matches(labels)]


def _check_budget(budget: Object, name: str) -> None:
    status, generation = child(budget, "status"), metadata(budget).get("generation")
    wanted, healthy = _count(status, "desiredHealthy"), _count(status, "currentHealthy")
    retry_after = 0
    if isinstance(generation, int) and _count(status, "observedGeneration") < generation:
        why, retry_after = f"The disruption budget {name} is still being processed by the server.", RETRY_SECONDS
    elif _count(status, "disruptionsAllowed") > 0:
        return
    elif healthy <= wanted:
        why = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    else:
        why = f"The disruption budget {name} does not allow evicting pods currently"
    error = too_many_requests(REFUSED, retry_after)
    error.details = {"causes": [{"reason": "DisruptionBudget", "message": why}], **(error.details or {})}
    raise error


def _count(status: Object, name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0
