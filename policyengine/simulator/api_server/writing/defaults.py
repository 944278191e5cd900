"""The defaults the real server fills in, by kind: the table `kinds/schemas/defaults.txt`, and what depends on more.

A default that hangs on another field, or is worked out, is a function here: `COMPUTED` lists them by kind.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache

import msgspec

from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object, child, objects

Path = tuple[str, ...]
Defaults = tuple[tuple[Path, Json], ...]
CONTAINERS = ("initContainers", "containers")
RBAC = "rbac.authorization.k8s.io"
MAX_INT32 = 2**31 - 1
EMPTY: tuple[Json, ...] = (None, "", {})


@cache
def _table() -> dict[str, Defaults]:
    """By kind, the path of each field and its default."""
    found: dict[str, list[str]] = {}
    kind = ""
    for line in (FOLDER / "defaults.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[kind].append(line.strip())
        elif not line.startswith("#"):
            kind = line
            found[kind] = []

    def expanded(kind: str, below: str = "") -> Iterator[tuple[Path, Json]]:
        for line in found[kind]:
            name, _, rest = line.partition(" ")
            if name == "=":
                other, _, path = rest.partition(" ")
                yield from expanded(other, f"{below}{path}.")
            else:
                yield tuple((below + name).replace("[]", ".[]").split(".")), msgspec.json.decode(rest)

    return {kind: tuple(expanded(kind)) for kind in found}


def _fill(held: Json, path: Path, value: Json) -> None:
    """Set the field at a path below `held`, wherever what holds it is there."""
    for at, name in enumerate(path):
        if name == "[]":
            for item in held if isinstance(held, list) else ():
                _fill(item, path[at + 1 :], value)
            return
        if not isinstance(held, dict):
            return
        if at + 1 < len(path):
            held = held.get(name)
        elif held.get(name) in EMPTY:
            held[name] = deepcopy(value)


def apply_defaults(kind: str, obj: Object) -> None:
    """Fill in what `obj` leaves open."""
    for path, value in _table().get(kind, ()):
        _fill(obj, path, value)
    if kind in POD_SPECS:
        _pod_spec(child(obj, *POD_SPECS[kind]))
    if kind in COMPUTED:
        COMPUTED[kind](obj)


# What is worked out


def image_tag(image: str) -> str:
    """The tag of an image reference; `latest` where neither tag nor digest is given."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else "" if digest else "latest"


def _pod_spec(spec: Object) -> None:
    """Policies that follow the image, sources of volumes, the account under both its names."""
    if not spec:
        return
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for one in [one for name in (*CONTAINERS, "ephemeralContainers") for one in objects(spec.get(name))]:
        pull = "Always" if image_tag(str(one.get("image", ""))) == "latest" else "IfNotPresent"
        one["imagePullPolicy"] = one.get("imagePullPolicy") or pull
    for volume in objects(spec.get("volumes")):
        if not any(isinstance(source, dict) for source in volume.values()):
            volume["emptyDir"] = {}
        _host_path(volume)


def _host_path(holder: Object) -> None:
    if isinstance(holder.get("hostPath"), dict):
        child(holder, "hostPath").setdefault("type", "")


def _pod(obj: Object) -> None:
    """Requests follow limits, and host-network pods have their container ports on the host."""
    spec = child(obj, "spec")
    containers = [one for name in CONTAINERS for one in objects(spec.get(name))]
    whole = child(spec, "resources")
    if child(whole, "limits"):
        asked = {name for one in objects(spec.get("containers")) for name in child(one, "resources", "requests")}
        follow = {name: amount for name, amount in child(whole, "limits").items() if name not in asked}
        whole["requests"] = {**follow, **child(whole, "requests")}
    for one in containers:
        resources = child(one, "resources")
        if child(resources, "limits"):
            resources["requests"] = {**child(resources, "limits"), **child(resources, "requests")}
        for port in objects(one.get("ports")) if spec.get("hostNetwork") else []:
            port["hostPort"] = port.get("hostPort") or port.get("containerPort")


def _deployment(obj: Object) -> None:
    strategy = child(obj, "spec", "strategy")
    if strategy.get("type") == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **child(strategy, "rollingUpdate")}


def _job(obj: Object) -> None:
    """Without labels of its own a Job shares those of its pods, one object with them."""
    spec = child(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    spec["podReplacementPolicy"] = spec.get("podReplacementPolicy") or replacement
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32
    meta, labels = child(obj, "metadata"), child(spec, "template", "metadata").get("labels")
    if labels and not meta.get("labels"):
        meta["labels"] = labels


def _node(obj: Object) -> None:
    """Allocatable follows capacity."""
    status = child(obj, "status")
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(child(status, "capacity"))


def _service(obj: Object) -> None:
    spec = child(obj, "spec")
    type_ = spec["type"]
    if type_ != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if type_ in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if type_ == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    for port in objects(spec.get("ports")):
        port["targetPort"] = port.get("targetPort") or port.get("port")


def _namespace(obj: Object) -> None:
    """Its name is one of its labels."""
    meta = child(obj, "metadata")
    if meta.get("name"):
        meta["labels"] = {**child(meta, "labels"), "kubernetes.io/metadata.name": meta["name"]}


def _secret(obj: Object) -> None:
    """What is given as plain text is stored as data."""
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {k: b64encode(str(v).encode()).decode() for k, v in plain.items()}
        obj["data"] = {**child(obj, "data"), **encoded}


def _resource_claim(obj: Object) -> None:
    """A request of devices means one of them."""
    for request in objects(child(obj, "spec", "devices").get("requests")):
        for asked in (child(request, "exactly"), *objects(request.get("firstAvailable"))):
            if asked.get("allocationMode") == "ExactCount":
                asked["count"] = asked.get("count") or 1


def _role_binding(obj: Object) -> None:
    for subject in objects(obj.get("subjects")):
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or RBAC


def _custom_resource_definition(obj: Object) -> None:
    names = child(obj, "spec", "names")
    if names:
        kind = str(names.get("kind", ""))
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    for version in objects(child(obj, "spec").get("versions")):
        for column in objects(version.get("additionalPrinterColumns")):
            if not column.get("priority"):
                column.pop("priority", None)


WORKLOADS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
POD_SPECS: dict[str, Path] = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(WORKLOADS, ("spec", "template", "spec")),
}
"""Where a kind holds a PodSpec."""
COMPUTED: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "Node": _node,
    "Service": _service,
    "Namespace": _namespace,
    "Deployment": _deployment,
    "Job": _job,
    "ResourceClaim": _resource_claim,
    "ResourceClaimTemplate": lambda obj: _resource_claim(child(obj, "spec")),
    "PersistentVolume": lambda obj: _host_path(child(obj, "spec")),
    "Secret": _secret,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "CustomResourceDefinition": _custom_resource_definition,
}
