"""The cells `kubectl get` prints for each kind (pkg/printers/internalversion).

A cell is a function of the object and the time. Most are a path, `field(".spec.nodeName", NONE)`; `CELLS` lists those
of each kind in the order of its columns.
"""

from collections.abc import Callable

from policyengine.simulator.api_server.scalars import parse_seconds
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.store import Object, child, metadata, objects

Cell = Callable[[Object, float], Json]
NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 86400 * 365
# Up to so many seconds: the unit, and the smaller one that is shown beside it.
SPANS = (
    (2 * MINUTE, 1, "s", 0, ""),
    (10 * MINUTE, MINUTE, "m", 1, "s"),
    (3 * HOUR, MINUTE, "m", 0, ""),
    (8 * HOUR, HOUR, "h", MINUTE, "m"),
    (2 * DAY, HOUR, "h", 0, ""),
    (8 * DAY, DAY, "d", HOUR, "h"),
    (2 * YEAR, DAY, "d", 0, ""),
    (8 * YEAR, YEAR, "y", DAY, "d"),
)


def human_duration(seconds: float) -> str:
    """A span as kubectl prints it: two units where the larger is small, one otherwise."""
    if seconds < -2:
        return "<invalid>"
    whole = max(0, int(seconds))
    for limit, unit, letter, small, small_letter in SPANS:
        if whole < limit:
            rest = whole % unit // small if small else 0
            return f"{whole // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{whole // YEAR}y"


def elapsed(stamp: Json, now: float) -> str:
    """How long ago a time was."""
    seconds = parse_seconds(stamp)
    return UNKNOWN if seconds is None else human_duration(now - seconds)


def jsonpath(obj: Json, path: str) -> Json:
    """The value at a simple JSONPath (`.spec.x`, `.status.conditions[0].type`, `["a.b"]`); None for none."""
    value = obj
    for step in path.replace("[", ".[").split("."):
        bare = step.strip("[]'\"")
        if isinstance(value, dict) and step:
            value = value.get(bare)
        elif isinstance(value, list) and bare.isdecimal() and int(bare) < len(value):
            value = value[int(bare)]
        elif step:
            return None
    return value


# What a cell shows


def field(path: str, empty: Json = "") -> Cell:
    """The value at a path, or `empty` for none."""
    return lambda obj, now: jsonpath(obj, path) or empty


def age(path: str = ".metadata.creationTimestamp") -> Cell:
    """How long ago the time at a path was."""
    return lambda obj, now: elapsed(jsonpath(obj, path), now)


def number(*paths: str) -> Cell:
    """How many items the lists or maps at some paths have."""

    def cell(obj: Object, now: float) -> Json:
        held = [jsonpath(obj, path) for path in paths]
        return sum(len(one) for one in held if isinstance(one, list | dict))

    return cell


def text(cell: Cell) -> Cell:
    """A cell as a string."""
    return lambda obj, now: str(cell(obj, now))


def joined(path: str, name: str) -> Cell:
    """One field of every item of a list, between commas."""
    return lambda obj, now: ",".join(str(one.get(name)) for one in objects(jsonpath(obj, path)))


def labels(path: str) -> Cell:
    """Labels in order, e.g. `a=b,c=d`; of a selector those it matches."""

    def cell(obj: Object, now: float) -> Json:
        held = jsonpath(obj, path)
        held = held.get("matchLabels", held) if isinstance(held, dict) else {}
        return ",".join(f"{k}={v}" for k, v in sorted(held.items())) or NONE if isinstance(held, dict) else NONE

    return cell


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


# Pods and nodes


def _container_reason(status: Object) -> str:
    state = child(status, "state")
    waiting, ended = child(state, "waiting"), child(state, "terminated")
    if waiting.get("reason") or not ended:
        return str(waiting.get("reason") or "")
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _conditions(obj: Object) -> dict[Json, Json]:
    return {one.get("type"): one.get("status") for one in objects(child(obj, "status").get("conditions"))}


def _running(row: Object) -> bool:
    return bool(row.get("ready")) and child(row, "state").get("running") is not None


def _pod_status(obj: Object, now: float) -> Json:
    """The phase, or what says more."""
    status = child(obj, "status")
    reason = str(status.get("reason") or status.get("phase") or "")
    if any(c.get("reason") == "SchedulingGated" for c in objects(status.get("conditions"))):
        reason = "SchedulingGated"
    rows = objects(status.get("containerStatuses"))
    for row in reversed(rows):
        reason = _container_reason(row) or reason
    if reason == "Completed" and any(map(_running, rows)):
        reason = "Running" if _conditions(obj).get("Ready") == "True" else "NotReady"
    if metadata(obj).get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _pod_ready(obj: Object, now: float) -> Json:
    spec, rows = child(obj, "spec"), objects(child(obj, "status").get("containerStatuses"))
    sidecars = sum(c.get("restartPolicy") == "Always" for c in objects(spec.get("initContainers")))
    return f"{sum(map(_running, rows))}/{len(objects(spec.get('containers'))) + sidecars}"


def _pod_restarts(obj: Object, now: float) -> Json:
    return str(sum(_count(row.get("restartCount")) for row in objects(jsonpath(obj, ".status.containerStatuses"))))


def _pod_readiness_gates(obj: Object, now: float) -> Json:
    gates, held = objects(jsonpath(obj, ".spec.readinessGates")), _conditions(obj)
    return f"{sum(held.get(one.get('conditionType')) == 'True' for one in gates)}/{len(gates)}" if gates else NONE


def _node_status(obj: Object, now: float) -> Json:
    word = {"True": "Ready", None: "Unknown"}.get(_conditions(obj).get("Ready"), "NotReady")  # type: ignore[arg-type]
    return word + (",SchedulingDisabled" if child(obj, "spec").get("unschedulable") else "")


def _node_roles(obj: Object, now: float) -> Json:
    prefix = "node-role.kubernetes.io/"
    held = child(metadata(obj), "labels")
    return ",".join(sorted(k.removeprefix(prefix) for k in held if k.startswith(prefix) and k != prefix)) or NONE


def _node_address(kind: str) -> Cell:
    def cell(obj: Object, now: float) -> Json:
        rows = objects(child(obj, "status").get("addresses"))
        return next((one.get("address") for one in rows if one.get("type") == kind), NONE) or NONE

    return cell


def _node_kernel(obj: Object, now: float) -> Json:
    info = child(obj, "status", "nodeInfo")
    machine = info.get("architecture")
    return str(info.get("kernelVersion") or UNKNOWN) + (f" ({machine})" if machine else "")


# Events, in their core/v1 form


def _event_first(obj: Object, now: float) -> Json:
    return elapsed(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _event_last(obj: Object, now: float) -> Json:
    last = child(obj, "series").get("lastObservedTime") if obj.get("series") else obj.get("lastTimestamp")
    return elapsed(last, now) if last or obj.get("series") else _event_first(obj, now)


def _event_count(obj: Object, now: float) -> Json:
    return str(_count(child(obj, "series").get("count")) if obj.get("series") else _count(obj.get("count")) or 1)


def _event_object(obj: Object, now: float) -> Json:
    involved = child(obj, "involvedObject")
    kind = str(involved.get("kind") or "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _event_source(obj: Object, now: float) -> Json:
    source = child(obj, "source")
    where = source.get("component") or obj.get("reportingComponent") or ""
    host = source.get("host") or (not source.get("component") and obj.get("reportingInstance"))
    return f"{where}, {host}" if host else where


# Other kinds


def _service_ports(obj: Object, now: float) -> Json:
    def shown(port: Object) -> str:
        outside = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{outside}/{port.get('protocol')}"

    return ",".join(map(shown, objects(child(obj, "spec").get("ports")))) or NONE


def _of(part: str, whole: str) -> Cell:
    """Two counts as `part/whole`."""
    return lambda obj, now: f"{jsonpath(obj, part) or 0}/{jsonpath(obj, whole) or 0}"


def _job_status(obj: Object, now: float) -> Json:
    true = [name for name, status in _conditions(obj).items() if status == "True"]
    for state in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if state == "Suspended" and metadata(obj).get("deletionTimestamp"):
            return "Terminating"
        if state in true:
            return state
    return "Running"


def _job_completions(obj: Object, now: float) -> Json:
    spec = child(obj, "spec")
    whole, at_once = spec.get("completions"), spec.get("parallelism")
    if whole is None:
        whole = f"1 of {at_once}" if isinstance(at_once, int) and at_once > 1 else "1"
    return f"{child(obj, 'status').get('succeeded') or 0}/{whole}"


def _job_duration(obj: Object, now: float) -> Json:
    began, ended = (parse_seconds(child(obj, "status").get(name)) for name in ("startTime", "completionTime"))
    return "" if began is None else human_duration((now if ended is None else ended) - began)


def _modes(path: str) -> Cell:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

    def cell(obj: Object, now: float) -> Json:
        held = jsonpath(obj, path)
        return ",".join(word for mode, word in short.items() if isinstance(held, list) and mode in held)

    return cell


def _if_bound(cell: Cell) -> Cell:
    return lambda obj, now: cell(obj, now) if child(obj, "spec").get("volumeName") else ""


def _volume_phase(obj: Object, now: float) -> Json:
    return "Terminating" if metadata(obj).get("deletionTimestamp") else child(obj, "status").get("phase") or ""


def _volume_claim(obj: Object, now: float) -> Json:
    reference = child(obj, "spec", "claimRef")
    return f"{reference.get('namespace')}/{reference['name']}" if reference.get("name") else ""


def _class_name(obj: Object, now: float) -> Json:
    default = child(metadata(obj), "annotations").get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{metadata(obj).get('name')}{' (default)' if default else ''}"


def _expands(obj: Object, now: float) -> Json:
    return str(bool(obj.get("allowVolumeExpansion"))).lower()


def _budget_bound(name: str) -> Cell:
    def cell(obj: Object, now: float) -> Json:
        bound = child(obj, "spec").get(name)
        return "N/A" if bound is None else str(bound)

    return cell


def _claim_state(obj: Object, now: float) -> Json:
    going, status = bool(metadata(obj).get("deletionTimestamp")), child(obj, "status")
    allocated = bool(status.get("allocation"))
    states = ["deleted"] * going + (["allocated"] if allocated else ["pending"] * (not going))
    return ",".join(states + ["reserved"] * (allocated and bool(status.get("reservedFor"))))


NAME, AGE = field(".metadata.name"), age()
NODE_INFO = ".status.nodeInfo"
TEMPLATE = (
    joined(".spec.template.spec.containers", "name"),
    joined(".spec.template.spec.containers", "image"),
)
SELECTOR = labels(".spec.selector")
REPLICAS = [field(path, 0) for path in (".spec.replicas", ".status.replicas", ".status.readyReplicas")]
READY = _of(".status.readyReplicas", ".spec.replicas")
STORAGE_ATTRIBUTES = field(".spec.volumeAttributesClassName", UNSET)
CELLS: dict[str, tuple[Cell, ...]] = {
    "Pod": (
        *(NAME, _pod_ready, _pod_status, _pod_restarts, AGE, field(".status.podIPs[0].ip", NONE)),
        *(field(".spec.nodeName", NONE), field(".status.nominatedNodeName", NONE), _pod_readiness_gates),
    ),
    "Node": (
        *(NAME, _node_status, _node_roles, AGE, field(f"{NODE_INFO}.kubeletVersion"), _node_address("InternalIP")),
        *(_node_address("ExternalIP"), field(f"{NODE_INFO}.osImage", UNKNOWN), _node_kernel),
        field(f"{NODE_INFO}.containerRuntimeVersion", UNKNOWN),
    ),
    "Event": (
        *(_event_last, field(".type"), field(".reason"), _event_object, field(".involvedObject.fieldPath")),
        *(_event_source, lambda obj, now: str(obj.get("message") or "").strip(), _event_first, _event_count, NAME),
    ),
    "Service": (
        *(
            NAME,
            field(".spec.type", None),
            field(".spec.clusterIPs[0]", NONE),
            field(".spec.externalName", NONE),
            _service_ports,
            AGE,
        ),
        labels(".spec.selector"),
    ),
    "Namespace": (NAME, field(".status.phase", None), AGE),
    "ConfigMap": (NAME, text(number(".data", ".binaryData")), AGE),
    "Secret": (NAME, field(".type", None), text(number(".data")), AGE),
    "Lease": (NAME, field(".spec.holderIdentity"), AGE),
    "PriorityClass": (NAME, field(".value", 0), field(".globalDefault", False), AGE, field(".preemptionPolicy", None)),
    "PodDisruptionBudget": (
        *(NAME, _budget_bound("minAvailable"), _budget_bound("maxUnavailable")),
        *(field(".status.disruptionsAllowed", 0), AGE),
    ),
    "ReplicaSet": (NAME, *REPLICAS, AGE, *TEMPLATE, SELECTOR),
    "Deployment": (
        *(NAME, READY, field(".status.updatedReplicas", 0), field(".status.availableReplicas", 0), AGE),
        *(*TEMPLATE, SELECTOR),
    ),
    "StatefulSet": (NAME, READY, AGE, *TEMPLATE),
    "Job": (NAME, _job_status, _job_completions, _job_duration, AGE, *TEMPLATE, SELECTOR),
    "PersistentVolumeClaim": (
        *(NAME, _volume_phase, field(".spec.volumeName"), _if_bound(field(".status.capacity.storage"))),
        *(_if_bound(_modes(".status.accessModes")), field(".spec.storageClassName"), STORAGE_ATTRIBUTES, AGE),
        field(".spec.volumeMode", UNSET),
    ),
    "PersistentVolume": (
        *(NAME, field(".spec.capacity.storage"), _modes(".spec.accessModes")),
        *(field(".spec.persistentVolumeReclaimPolicy", None), _volume_phase, _volume_claim),
        *(field(".spec.storageClassName"), STORAGE_ATTRIBUTES, field(".status.reason"), AGE),
        field(".spec.volumeMode", UNSET),
    ),
    "StorageClass": (
        *(_class_name, field(".provisioner", None), field(".reclaimPolicy", None)),
        *(field(".volumeBindingMode", None), _expands, AGE),
    ),
    "ServiceAccount": (NAME, AGE),
    "DeviceClass": (NAME, AGE),
    "ResourceClaim": (NAME, _claim_state, AGE),
    "ResourceClaimTemplate": (NAME, AGE),
    "ResourceSlice": (NAME, field(".spec.nodeName", UNSET), field(".spec.driver", None), field(".spec.pool.name"), AGE),
    "CSINode": (NAME, number(".spec.drivers"), AGE),
}
