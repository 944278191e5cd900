"""Binding and evicting pods.

A binding does not check that the node exists or that the pod fits. It copies the node's zone and region labels
(PodTopologyLabels) and the Binding's annotations to the pod, and clears a nomination.

An eviction is a delete that asks the pod's disruption budget first (policy/v1 Eviction). A pod that has not started,
has finished or is being deleted goes whatever the budget. A budget that its controller has not seen yet, or that is
used up, answers 429.
"""

from policyengine.simulator.api_server.decoding.bodies import read_body
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.reading.selectors import from_object, matches_labels
from policyengine.simulator.api_server.requests import Request
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request, conflict, too_many_requests
from policyengine.simulator.api_server.store import Entry, Object, child, metadata, objects
from policyengine.simulator.api_server.writing.deletion import DeleteOptions, Deleter, parse_delete_options
from policyengine.simulator.api_server.writing.registry import Caller, Registry

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class Binder:
    """Binds pods of a registry."""

    def __init__(self, registry: Registry, pods: Kind) -> None:
        self._registry = registry
        self._pods = pods

    def bind(self, namespace: str, name: str, request: Request, dry_run: bool, caller: Caller) -> None:
        """Bind one pod as the body says; raises 400, 404, 409 and 422."""
        body = read_body(request, "Binding")
        binding = body if isinstance(body, dict) else {}
        meta = child(binding, "metadata")
        name = name or str(meta.get("name") or "")
        self._check(name, namespace, binding)
        before = self._registry.entry(self._pods, namespace, name)
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
        self._refuse(name, pod)
        self._assign(pod, binding)
        if not dry_run:
            self._registry.commit(self._pods, "bind", before, pod, caller, "binding")

    def _check(self, name: str, namespace: str, binding: Object) -> None:
        meta, target = child(binding, "metadata"), child(binding, "target")
        if binding.get("kind") not in (None, "", "Binding"):
            raise bad_request(
                f'{binding["kind"]} in version "v1" cannot be handled as a Binding: converting (v1.{binding["kind"]}) '
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

    def _refuse(self, name: str, pod: Object) -> None:
        spec = child(pod, "spec")
        why = ""
        if metadata(pod).get("deletionTimestamp"):
            why = f"pod {name} is being deleted, cannot be assigned to a host"
        elif spec.get("nodeName"):
            why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        elif spec.get("schedulingGates"):
            why = f"pod {name} has non-empty .spec.schedulingGates"
        if why:
            raise conflict("pods/binding", "", name, why)

    def _assign(self, pod: Object, binding: Object) -> None:
        given, meta = child(binding, "metadata"), metadata(pod)
        node = str(child(binding, "target")["name"])
        child(pod, "spec")["nodeName"] = node
        if child(given, "annotations"):
            meta["annotations"] = {**child(meta, "annotations"), **child(given, "annotations")}
        labels = {**child(given, "labels"), **self._topology(node)}
        if labels:
            meta["labels"] = {**child(meta, "labels"), **labels}
        status = child(pod, "status")
        status.pop("nominatedNodeName", None)
        set_condition(status, {"type": "PodScheduled", "status": "True"}, self._registry.now())

    def _topology(self, node: str) -> Object:
        found = self._registry.store.collection(("", "nodes")).get(node)
        labels = child(found.object(), "metadata", "labels") if found else {}
        return {name: labels[name] for name in TOPOLOGY_LABELS if name in labels}


def set_condition(status: Object, condition: Object, now: str) -> None:
    """Put a pod condition in place; its transition time moves only with its status."""
    rows = objects(status.get("conditions"))
    fresh: Object = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for at, held in enumerate(rows):
        if held.get("type") == condition["type"]:
            if held.get("status") == condition["status"]:
                fresh["lastTransitionTime"] = held.get("lastTransitionTime")
            rows[at] = fresh
            break
    else:
        rows.append(fresh)
    conditions: list[Json] = list(rows)
    status["conditions"] = conditions


BUDGETS = ("policy", "poddisruptionbudgets")
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
RETRY_SECONDS = 10


class Evicter:
    """Evicts pods of a registry."""

    def __init__(self, registry: Registry, deleter: Deleter, pods: Kind, budgets: Kind) -> None:
        self._registry = registry
        self._deleter = deleter
        self._pods = pods
        self._budgets = budgets

    def evict(self, namespace: str, name: str, eviction: Object, dry_run: bool, caller: Caller) -> None:
        """Evict one pod; raises 400, 404, 429 and 500."""
        if child(eviction, "metadata").get("name") != name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = parse_delete_options({}, child(eviction, "deleteOptions"))
        entry = self._registry.entry(self._pods, namespace, name)
        pod = entry.object()
        if not _ignores_budget(pod):
            self._ask_budget(namespace, name, pod, dry_run or options.dry_run, caller)
        if dry_run or options.dry_run:
            return
        self._mark_disrupted(entry, pod, caller)
        plain = DeleteOptions(options.grace, options.uid, "", options.propagation)
        self._deleter.delete(self._pods, namespace, name, plain, caller)

    def _mark_disrupted(self, entry: Entry, pod: Object, caller: Caller) -> None:
        condition: Object = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        set_condition(child(pod, "status"), condition, self._registry.now())
        self._registry.commit(self._pods, "update", entry, pod, caller, "status")

    def _ask_budget(self, namespace: str, name: str, pod: Object, dry_run: bool, caller: Caller) -> None:
        budgets = self._budgets_of(namespace, pod)
        if len(budgets) > 1:
            raise ApiError(500, "", TWO_BUDGETS)
        if not budgets:
            return
        entry = budgets[0]
        budget = entry.object()
        status = child(budget, "status")
        self._check(budget, entry.name)
        allowed = _count(status, "disruptionsAllowed") - 1
        disrupted = child(status, "disruptedPods")
        budget["status"] = {
            **status,
            "disruptionsAllowed": allowed,
            "disruptedPods": {**disrupted, name: self._registry.now()},
        }
        if not dry_run:
            self._registry.commit(self._budgets, "update", entry, budget, caller, "status")

    def _check(self, budget: Object, name: str) -> None:
        status, generation = child(budget, "status"), metadata(budget).get("generation")
        seen = _count(status, "observedGeneration")
        if isinstance(generation, int) and seen < generation:
            raise _refusal(f"The disruption budget {name} is still being processed by the server.", RETRY_SECONDS)
        if _count(status, "disruptionsAllowed") > 0:
            return
        wanted, healthy = _count(status, "desiredHealthy"), _count(status, "currentHealthy")
        if healthy <= wanted:
            raise _refusal(f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently", 0)
        raise _refusal(f"The disruption budget {name} does not allow evicting pods currently", 0)

    def _budgets_of(self, namespace: str, pod: Object) -> list[Entry]:
        labels = {k: str(v) for k, v in child(metadata(pod), "labels").items()}
        found: list[Entry] = []
        collection = self._registry.store.collection(BUDGETS)
        for key in collection.keys(namespace):
            entry = collection.entries[key]
            selector = from_object(child(entry.object(), "spec").get("selector"))
            if selector is not None and matches_labels(selector, labels):
                found.append(entry)
        return found


def _count(status: Object, name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0


def _refusal(why: str, retry_after: int) -> ApiError:
    error = too_many_requests(REFUSED, retry_after)
    cause: Json = {"reason": "DisruptionBudget", "message": why}
    error.details = {"causes": [cause], **(error.details or {})}
    return error


def _ignores_budget(pod: Object) -> bool:
    phase = child(pod, "status").get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(metadata(pod).get("deletionTimestamp"))
