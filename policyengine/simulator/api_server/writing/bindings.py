"""Binding a pod to a node: the one write that schedules, with its refusals, as fast as it can be made.

The server checks neither that the node exists nor that the pod fits. The node's zone and region labels are copied to
the pod (PodTopologyLabels), annotations of the Binding too; a nomination is cleared.
"""

import msgspec
from cachetools import LRUCache

from policyengine.simulator.api_server.decoding.bodies import read_body
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import Request
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request, conflict, not_found
from policyengine.simulator.api_server.storage.store import Entry, Object, child, key_of, metadata, objects
from policyengine.simulator.api_server.writing.registry import Caller, Registry

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class _Target(msgspec.Struct):
    kind: str | None = None
    name: str | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Binding(msgspec.Struct, rename="camel"):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    target: _Target = msgspec.field(default_factory=_Target)
    kind: str | None = None
    api_version: str | None = None


_decoder = msgspec.json.Decoder(_Binding)


def read_binding(request: Request) -> _Binding:
    """A Binding; raises 400, 413 and 415."""
    try:
        found = _decoder.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # The slow way says what is wrong, in the real server's words, and reads what is not JSON.
        try:
            found = msgspec.convert(read_body(request, "Binding"), _Binding)
        except msgspec.ValidationError as error:
            raise bad_request(f'Binding in version "v1" cannot be handled as a Binding: {error}') from error
    if found.kind not in (None, "", "Binding"):
        raise bad_request(
            f'{found.kind} in version "v1" cannot be handled as a Binding: converting (v1.{found.kind}) to '
            "(core.Binding): unknown conversion"
        )
    return found


class Binder:
    """Binds pods of a registry."""

    def __init__(self, registry: Registry, pods: Kind) -> None:
        self._registry = registry
        self._pods = pods
        self._topologies: LRUCache[str, tuple[Entry, dict[str, str]]] = LRUCache(10_000)
        """What was read of a node, and the state it was read from."""

    def bind(self, namespace: str, name: str, request: Request, dry_run: bool, caller: Caller) -> None:
        """Bind one pod as the body says; raises 400, 404, 409 and 422."""
        binding = read_binding(request)
        name = name or binding.metadata.name or ""
        self._check(name, namespace, binding)
        before = self._registry.collection(self._pods).get(key_of(namespace, name))
        if before is None:
            raise not_found("pods", "", name)
        self._match(name, namespace, before.uid, before.revision, binding)
        pod = before.object()
        self._refuse(name, pod)
        self._assign(pod, binding)
        if not dry_run:
            self._registry.commit(self._pods, "bind", before, pod, caller, "binding")

    def _check(self, name: str, namespace: str, binding: _Binding) -> None:
        if binding.metadata.name != name:
            raise bad_request("name in URL does not match name in Binding object")
        if binding.metadata.namespace and binding.metadata.namespace != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        faults: list[str] = []
        if binding.target.kind not in (None, "", "Node"):
            faults.append(
                f'target.kind: Unsupported value: "{binding.target.kind}": supported values: "Node", "<empty>"'
            )
        if not binding.target.name:
            faults.append("target.name: Required value")
        if faults:
            # The real server returns the bare list of faults, which its generic wrapper makes a 500.
            text = faults[0] if len(faults) == 1 else "[" + ", ".join(faults) + "]"
            raise ApiError(500, "", text)

    def _match(self, name: str, namespace: str, uid: str, revision: int, binding: _Binding) -> None:
        meta = binding.metadata
        for asked, held, what in ((meta.uid, uid, "UID"), (meta.resource_version, str(revision), "ResourceVersion")):
            if asked and asked != held:
                why = (
                    f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: "
                    f"0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {asked}, {what} in object "
                    f"meta: {held}"
                )
                raise conflict("pods", "", name, why)

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

    def _assign(self, pod: Object, binding: _Binding) -> None:
        node = binding.target.name or ""
        child(pod, "spec")["nodeName"] = node
        meta = metadata(pod)
        if binding.metadata.annotations:
            meta["annotations"] = {**child(meta, "annotations"), **binding.metadata.annotations}
        labels = {**(binding.metadata.labels or {}), **self._topology(node)}
        if labels:
            meta["labels"] = {**child(meta, "labels"), **labels}
        status = child(pod, "status")
        status.pop("nominatedNodeName", None)
        set_condition(status, {"type": "PodScheduled", "status": "True"}, self._registry.now())

    def _topology(self, node: str) -> dict[str, str]:
        found = self._registry.store.collection(("", "nodes")).get(node)
        if found is None:
            return {}
        known = self._topologies.get(node)
        if known is None or known[0] is not found:
            labels = child(found.object(), "metadata", "labels")
            known = found, {name: str(labels[name]) for name in TOPOLOGY_LABELS if name in labels}
            self._topologies[node] = known
        return known[1]


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
