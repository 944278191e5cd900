"""Pods and nodes for tests, as one would say them: `make_pod("p").req(cpu="1").node("a").build()`.

`json()` gives the object as the API would send it, `build()` what decoding makes of that. Every call returns the
builder itself. What is not said is left out, except a UID equal to the name and one container.
"""

from __future__ import annotations

import copy
from typing import Any, Self

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod

Json = dict[str, Any]


class _Builder:
    def __init__(self, kind: str, metadata: Json) -> None:
        self._json: Json = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {}, "status": {}}

    @property
    def _metadata(self) -> Json:
        return self._json["metadata"]

    @property
    def _spec(self) -> Json:
        return self._json["spec"]

    @property
    def _status(self) -> Json:
        return self._json["status"]

    def json(self) -> Json:
        return copy.deepcopy(self._json)

    def uid(self, uid: str) -> Self:
        self._metadata["uid"] = uid
        return self

    def version(self, resource_version: int | str) -> Self:
        self._metadata["resourceVersion"] = str(resource_version)
        return self

    def created(self, time: str) -> Self:
        self._metadata["creationTimestamp"] = time
        return self

    def label(self, key: str, value: str) -> Self:
        self._metadata.setdefault("labels", {})[key] = value
        return self

    def labels(self, labels: dict[str, str]) -> Self:
        self._metadata.setdefault("labels", {}).update(labels)
        return self

    def annotation(self, key: str, value: str) -> Self:
        self._metadata.setdefault("annotations", {})[key] = value
        return self

    def set(self, path: str, value: Any) -> Self:
        """Set any field: `set("spec.hostNetwork", True)`."""
        *parents, last = path.split(".")
        place = self._json
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        return self


class PodBuilder(_Builder):
    def __init__(self, name: str, namespace: str) -> None:
        super().__init__("Pod", {"name": name, "namespace": namespace, "uid": name})
        self._spec["containers"] = [{"name": "c", "image": "app"}]

    def build(self) -> Pod:
        return decode(Pod, self._json)

    def info(self) -> PodInfo:
        return PodInfo(self.build())

    # --- containers

    @property
    def _container(self) -> Json:
        return self._spec["containers"][-1]

    def container(
        self,
        resources: dict[str, str | int] | None = None,
        *,
        name: str = "",
        image: str = "app",
        **more: str | int,
    ) -> Self:
        """A further container with these requests; `req`, `limit`, `image`, `host_port` then speak of it."""
        name = name or f"c{len(self._spec['containers'])}"
        self._spec["containers"].append(_container(name, image, _named(resources, more)))
        return self

    def init(
        self,
        resources: dict[str, str | int] | None = None,
        *,
        name: str = "",
        sidecar: bool = False,
        image: str = "app",
        **more: str | int,
    ) -> Self:
        """An init container with these requests; with `sidecar` it restarts always."""
        inits = self._spec.setdefault("initContainers", [])
        container = _container(name or f"i{len(inits)}", image, _named(resources, more))
        if sidecar:
            container["restartPolicy"] = "Always"
        inits.append(container)
        return self

    def req(self, resources: dict[str, str | int] | None = None, **more: str | int) -> Self:
        """Requests of the container; names that are no identifiers go into the dict."""
        _resources(self._container)["requests"] |= _named(resources, more)
        return self

    def limit(self, resources: dict[str, str | int] | None = None, **more: str | int) -> Self:
        """Limits of the container."""
        _resources(self._container).setdefault("limits", {}).update(_named(resources, more))
        return self

    def image(self, image: str) -> Self:
        self._container["image"] = image
        return self

    def host_port(self, port: int, protocol: str = "", ip: str = "") -> Self:
        entry: Json = {"containerPort": port, "hostPort": port}
        if protocol:
            entry["protocol"] = protocol
        if ip:
            entry["hostIP"] = ip
        self._container.setdefault("ports", []).append(entry)
        return self

    def overhead(self, **amounts: str) -> Self:
        self._spec["overhead"] = _named(None, amounts)
        return self

    def pod_level(self, requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> Self:
        """`spec.resources`."""
        self._spec["resources"] = {"requests": requests or {}, "limits": limits or {}}
        return self

    # --- where it stands, or may stand

    def node(self, name: str) -> Self:
        self._spec["nodeName"] = name
        return self

    def nominated(self, name: str) -> Self:
        self._status["nominatedNodeName"] = name
        return self

    def scheduler(self, name: str) -> Self:
        self._spec["schedulerName"] = name
        return self

    def priority(self, value: int, policy: str | None = None) -> Self:
        self._spec["priority"] = value
        if policy:
            self._spec["preemptionPolicy"] = policy
        return self

    def gate(self, name: str) -> Self:
        self._spec.setdefault("schedulingGates", []).append({"name": name})
        return self

    def node_selector(self, labels: dict[str, str]) -> Self:
        self._spec.setdefault("nodeSelector", {}).update(labels)
        return self

    def toleration(
        self, key: str = "", operator: str = "", value: str = "", effect: str = "", seconds: int | None = None
    ) -> Self:
        entry: Json = {"key": key, "operator": operator, "value": value, "effect": effect}
        entry = {name: text for name, text in entry.items() if text}
        if seconds is not None:
            entry["tolerationSeconds"] = seconds
        self._spec.setdefault("tolerations", []).append(entry)
        return self

    @property
    def _affinity(self) -> Json:
        return self._spec.setdefault("affinity", {})

    def node_affinity(self, *requirements: tuple[str, str, list[str]], fields: bool = False) -> Self:
        """One more required term (terms are or-ed) of `(key, operator, values)`."""
        affinity = self._affinity.setdefault("nodeAffinity", {})
        required = affinity.setdefault(_REQUIRED, {"nodeSelectorTerms": []})
        required["nodeSelectorTerms"].append(_node_term(requirements, fields))
        return self

    def preferred_node_affinity(self, weight: int, *requirements: tuple[str, str, list[str]]) -> Self:
        affinity = self._affinity.setdefault("nodeAffinity", {})
        term = {"weight": weight, "preference": _node_term(requirements, False)}
        affinity.setdefault(_PREFERRED, []).append(term)
        return self

    def pod_affinity(
        self, topology_key: str, labels: dict[str, str], *, anti: bool = False, weight: int = 0, **more: Any
    ) -> Self:
        """A term on pods with these labels: required, or preferred with a weight; `more` as on the wire."""
        term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}} | more
        affinity = self._affinity.setdefault("podAntiAffinity" if anti else "podAffinity", {})
        if weight:
            affinity.setdefault(_PREFERRED, []).append({"weight": weight, "podAffinityTerm": term})
        else:
            affinity.setdefault(_REQUIRED, []).append(term)
        return self

    def pod_anti_affinity(self, topology_key: str, labels: dict[str, str], *, weight: int = 0, **more: Any) -> Self:
        return self.pod_affinity(topology_key, labels, anti=True, weight=weight, **more)

    def spread(
        self,
        topology_key: str,
        labels: dict[str, str],
        max_skew: int = 1,
        when_unsatisfiable: str = "DoNotSchedule",
        **more: Any,
    ) -> Self:
        """A topology spread constraint; `more` as on the wire (`minDomains=2`)."""
        constraint = {
            "topologyKey": topology_key,
            "maxSkew": max_skew,
            "whenUnsatisfiable": when_unsatisfiable,
            "labelSelector": {"matchLabels": labels},
        }
        self._spec.setdefault("topologySpreadConstraints", []).append(constraint | more)
        return self

    def pvc(self, claim: str, name: str = "") -> Self:
        volume = {"name": name or claim, "persistentVolumeClaim": {"claimName": claim}}
        self._spec.setdefault("volumes", []).append(volume)
        return self

    def volume(self, name: str, **source: Any) -> Self:
        """A volume by its source as on the wire: `volume("v", csi={"driver": "d"})`."""
        self._spec.setdefault("volumes", []).append({"name": name} | source)
        return self

    # --- what became of it

    def owner(self, kind: str, name: str, uid: str = "", controller: bool = True) -> Self:
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid or name}
        self._metadata.setdefault("ownerReferences", []).append(reference | {"controller": controller})
        return self

    def deleting(self, time: str = "2026-01-01T00:00:00Z") -> Self:
        self._metadata["deletionTimestamp"] = time
        return self

    def phase(self, phase: str) -> Self:
        self._status["phase"] = phase
        return self

    def started(self, time: str) -> Self:
        self._status["startTime"] = time
        return self

    def condition(self, kind: str, status: str, reason: str = "", message: str = "", time: str = "") -> Self:
        entry = {"type": kind, "status": status, "reason": reason, "message": message}
        if time:
            entry["lastTransitionTime"] = time
        self._status.setdefault("conditions", []).append(entry)
        return self

    def container_status(
        self,
        name: str = "c",
        requests: dict[str, str] | None = None,
        allocated: dict[str, str] | None = None,
        limits: dict[str, str] | None = None,
        restarts: int = 0,
        init: bool = False,
    ) -> Self:
        """What runs, for in-place resize: actuated requests and limits, allocated resources."""
        entry: Json = {"name": name, "restartCount": restarts}
        if requests is not None or limits is not None:
            entry["resources"] = {"requests": requests or {}, "limits": limits or {}}
        if allocated is not None:
            entry["allocatedResources"] = allocated
        self._status.setdefault("initContainerStatuses" if init else "containerStatuses", []).append(entry)
        return self


class NodeBuilder(_Builder):
    def __init__(self, name: str) -> None:
        super().__init__("Node", {"name": name, "uid": name})

    def build(self) -> Node:
        return decode(Node, self._json)

    def capacity(self, resources: dict[str, str | int] | None = None, **more: str | int) -> Self:
        """Capacity and allocatable alike."""
        amounts = _named(resources, more)
        for field in ("capacity", "allocatable"):
            self._status.setdefault(field, {}).update(amounts)
        return self

    def allocatable(self, resources: dict[str, str | int] | None = None, **more: str | int) -> Self:
        """Allocatable alone."""
        self._status.setdefault("allocatable", {}).update(_named(resources, more))
        return self

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        entry = {"key": key, "effect": effect} | ({"value": value} if value else {})
        self._spec.setdefault("taints", []).append(entry)
        return self

    def unschedulable(self, value: bool = True) -> Self:
        self._spec["unschedulable"] = value
        return self

    def image(self, name: str, size: int, *more_names: str) -> Self:
        self._status.setdefault("images", []).append({"names": [name, *more_names], "sizeBytes": size})
        return self

    def condition(self, kind: str, status: str, reason: str = "") -> Self:
        entry = {"type": kind, "status": status, "reason": reason}
        self._status.setdefault("conditions", []).append(entry)
        return self

    def ready(self, value: bool = True) -> Self:
        return self.condition("Ready", str(value))


def make_pod(name: str = "p", namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def make_node(name: str = "n") -> NodeBuilder:
    return NodeBuilder(name)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _named(resources: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, str]:
    """Keyword names with dashes for underscores (`ephemeral_storage`), amounts as text."""
    named = dict(resources or {}) | {name.replace("_", "-"): amount for name, amount in more.items()}
    return {name: str(amount) for name, amount in named.items()}


def _resources(container: Json) -> Json:
    resources: Json = container.setdefault("resources", {})
    resources.setdefault("requests", {})
    return resources


def _container(name: str, image: str, requests: dict[str, str]) -> Json:
    container: Json = {"name": name, "image": image}
    if requests:
        _resources(container)["requests"] |= requests
    return container


def _node_term(requirements: tuple[tuple[str, str, list[str]], ...], fields: bool) -> Json:
    entries = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    return {"matchFields" if fields else "matchExpressions": entries}
