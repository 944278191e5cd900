"""Ages, spans and labels as `kubectl get` prints them.

The cells `kubectl get` prints for workloads.

The cells `kubectl get` prints for each kind (pkg/printers/internalversion).
"""

from collections.abc import Callable

from policyengine.simulator.api_server.decoding.scalars import parse_seconds
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, child, metadata, objects

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 86400 * 365


def human_duration(seconds: float) -> str:
    """A span as kubectl prints it: two units where the larger is small, one otherwise."""
    if seconds < -2:
        return "<invalid>"
    whole = max(0, int(seconds))
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two(whole // MINUTE, "m", whole % MINUTE, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole // HOUR, "h", whole // MINUTE % 60, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole // DAY, "d", whole // HOUR % 24, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole // YEAR, "y", whole // DAY % 365, "d")
    return f"{whole // YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(stamp: Json, now: float) -> str:
    """How long ago a time was."""
    seconds = parse_seconds(stamp)
    return UNKNOWN if seconds is None else human_duration(now - seconds)


def created(obj: Object, now: float) -> str:
    """An object's age."""
    return age(metadata(obj).get("creationTimestamp"), now)


def labelled(value: Json) -> str:
    """Labels in order, e.g. `a=b,c=d`."""
    pairs = sorted(value.items()) if isinstance(value, dict) else []
    return ",".join(f"{k}={v}" for k, v in pairs) or NONE


def _template(obj: Object) -> tuple[str, str]:
    rows = objects(child(obj, "spec", "template", "spec").get("containers"))
    return ",".join(str(c.get("name")) for c in rows), ",".join(str(c.get("image")) for c in rows)


def _selector(obj: Object) -> str:
    selector = child(obj, "spec", "selector")
    return labelled(selector.get("matchLabels") if "matchLabels" in selector else selector)


def replica_set(obj: Object, now: float) -> list[Json]:
    """A ReplicaSet's or ReplicationController's cells."""
    status, (names, images) = child(obj, "status"), _template(obj)
    wished = child(obj, "spec").get("replicas", 0)
    current, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    name = metadata(obj).get("name")
    return [name, wished, current, ready, created(obj, now), names, images, _selector(obj)]


def deployment(obj: Object, now: float) -> list[Json]:
    """A Deployment's cells."""
    status, (names, images) = child(obj, "status"), _template(obj)
    ready = f"{status.get('readyReplicas', 0)}/{child(obj, 'spec').get('replicas', 0)}"
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    name = metadata(obj).get("name")
    return [name, ready, updated, available, created(obj, now), names, images, _selector(obj)]


def stateful_set(obj: Object, now: float) -> list[Json]:
    """A StatefulSet's cells."""
    names, images = _template(obj)
    ready = f"{child(obj, 'status').get('readyReplicas', 0)}/{child(obj, 'spec').get('replicas', 0)}"
    return [metadata(obj).get("name"), ready, created(obj, now), names, images]


def daemon_set(obj: Object, now: float) -> list[Json]:
    """A DaemonSet's cells."""
    status, (names, images) = child(obj, "status"), _template(obj)
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    numbers = [status.get(name) or 0 for name in (*counts, "numberAvailable")]
    nodes = labelled(child(obj, "spec", "template", "spec").get("nodeSelector"))
    return [metadata(obj).get("name"), *numbers, nodes, created(obj, now), names, images, _selector(obj)]


JOB_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def job(obj: Object, now: float) -> list[Json]:
    """A Job's cells."""
    spec, status, (names, images) = child(obj, "spec"), child(obj, "status"), _template(obj)
    won, at_once = status.get("succeeded") or 0, spec.get("parallelism")
    whole = spec.get("completions")
    if whole is None:
        whole = f"1 of {at_once}" if isinstance(at_once, int) and at_once > 1 else "1"
    began, ended = parse_seconds(status.get("startTime")), parse_seconds(status.get("completionTime"))
    took = "" if began is None else human_duration((now if ended is None else ended) - began)
    cells: list[Json] = [metadata(obj).get("name"), _job_state(obj), f"{won}/{whole}", took]
    return [*cells, created(obj, now), names, images, _selector(obj)]


def _job_state(obj: Object) -> str:
    rows = objects(child(obj, "status").get("conditions"))
    true = [row.get("type") for row in rows if row.get("status") == "True"]
    for state in JOB_STATES:
        if state == "Suspended" and metadata(obj).get("deletionTimestamp"):
            return "Terminating"
        if state in true:
            return state
    return "Running"


def cron_job(obj: Object, now: float) -> list[Json]:
    """A CronJob's cells."""
    spec, status = child(obj, "spec"), child(obj, "status")
    containers = objects(child(spec, "jobTemplate", "spec", "template", "spec").get("containers"))
    names, images = (",".join(str(one.get(what)) for one in containers) for what in ("name", "image"))
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    suspended = "<unset>" if spec.get("suspend") is None else "True" if spec["suspend"] else "False"
    zone = spec.get("timeZone") or NONE
    cells: list[Json] = [metadata(obj).get("name"), spec.get("schedule"), zone, suspended]
    selector = child(spec, "jobTemplate", "spec").get("selector")
    shown = labelled(child({"s": selector}, "s").get("matchLabels"))
    return [*cells, len(objects(status.get("active"))), last, created(obj, now), names, images, shown]


ROLE_PREFIX = "node-role.kubernetes.io/"


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _container_reason(status: Object) -> str:
    state = child(status, "state")
    waiting, ended = child(state, "waiting"), child(state, "terminated")
    if waiting.get("reason"):
        return str(waiting["reason"])
    if not ended:
        return ""
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def pod_status(obj: Object) -> str:
    """The Status column: the phase, or what says more."""
    status = child(obj, "status")
    reason = str(status.get("reason") or status.get("phase") or "")
    conditions = objects(status.get("conditions"))
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        reason = "SchedulingGated"
    rows = objects(status.get("containerStatuses"))
    for row in reversed(rows):
        reason = _container_reason(row) or reason
    running = any(row.get("ready") and child(row, "state").get("running") is not None for row in rows)
    if reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        reason = "Running" if ready else "NotReady"
    if metadata(obj).get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _readiness_gates(obj: Object) -> str:
    gates = objects(child(obj, "spec").get("readinessGates"))
    held = {c.get("type"): c.get("status") for c in objects(child(obj, "status").get("conditions"))}
    if not gates:
        return NONE
    return f"{sum(held.get(gate.get('conditionType')) == 'True' for gate in gates)}/{len(gates)}"


def pod(obj: Object, now: float) -> list[Json]:
    """A pod's cells."""
    spec, status = child(obj, "spec"), child(obj, "status")
    rows = objects(status.get("containerStatuses"))
    total = len(objects(spec.get("containers")))
    total += sum(c.get("restartPolicy") == "Always" for c in objects(spec.get("initContainers")))
    ready = sum(bool(r.get("ready")) and child(r, "state").get("running") is not None for r in rows)
    restarts = sum(_count(row.get("restartCount")) for row in rows)
    ips = objects(status.get("podIPs"))
    return [
        metadata(obj).get("name"),
        f"{ready}/{total}",
        pod_status(obj),
        str(restarts),
        created(obj, now),
        ips[0].get("ip") if ips else NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(obj),
    ]


def node(obj: Object, now: float) -> list[Json]:
    """A node's cells."""
    status, info = child(obj, "status"), child(obj, "status", "nodeInfo")
    held = {c.get("type"): c.get("status") for c in objects(status.get("conditions"))}
    words = ["Ready" if held["Ready"] == "True" else "NotReady"] if "Ready" in held else ["Unknown"]
    if child(obj, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    labels = child(metadata(obj), "labels")
    roles = sorted(k.removeprefix(ROLE_PREFIX) for k in labels if k.startswith(ROLE_PREFIX) and k != ROLE_PREFIX)
    addresses = {a.get("type"): a.get("address") for a in objects(status.get("addresses"))}
    kernel = str(info.get("kernelVersion") or UNKNOWN)
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        metadata(obj).get("name"),
        ",".join(words),
        ",".join(roles) or NONE,
        created(obj, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def event(obj: Object, now: float) -> list[Json]:
    """An event's cells; `obj` in its core/v1 form."""
    series, involved = child(obj, "series"), child(obj, "involvedObject")
    first = age(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = age(obj.get("lastTimestamp"), now) if obj.get("lastTimestamp") else first
    count = _count(obj.get("count")) or 1
    if series:
        last, count = age(series.get("lastObservedTime"), now), _count(series.get("count"))
    source = child(obj, "source")
    where = source.get("component") or obj.get("reportingComponent") or ""
    host = source.get("host") or (not source.get("component") and obj.get("reportingInstance"))
    kind = str(involved.get("kind") or "").lower()
    return [
        last,
        obj.get("type") or "",
        obj.get("reason") or "",
        f"{kind}/{involved['name']}" if involved.get("name") else kind,
        involved.get("fieldPath") or "",
        f"{where}, {host}" if host else where,
        str(obj.get("message") or "").strip(),
        first,
        str(count),
        metadata(obj).get("name"),
    ]


def service(obj: Object, now: float) -> list[Json]:
    """A Service's cells."""
    spec = child(obj, "spec")
    ips = spec.get("clusterIPs")
    ports = ",".join(
        f"{p.get('port')}:{p['nodePort']}/{p.get('protocol')}"
        if p.get("nodePort")
        else f"{p.get('port')}/{p.get('protocol')}"
        for p in objects(spec.get("ports"))
    )
    external = spec.get("externalIPs")
    outside = ",".join(str(ip) for ip in external) if isinstance(external, list) and external else NONE
    if spec.get("type") == "ExternalName":
        outside = str(spec.get("externalName") or NONE)
    if spec.get("type") == "LoadBalancer":
        given = objects(child(obj, "status", "loadBalancer").get("ingress"))
        outside = ",".join(str(i.get("ip") or i.get("hostname")) for i in given) or "<pending>"
    return [
        metadata(obj).get("name"),
        spec.get("type"),
        str(ips[0]) if isinstance(ips, list) and ips else NONE,
        outside,
        ports or NONE,
        created(obj, now),
        labelled(spec.get("selector")),
    ]


def namespace(obj: Object, now: float) -> list[Json]:
    """A namespace's cells."""
    return [metadata(obj).get("name"), child(obj, "status").get("phase"), created(obj, now)]


def config_map(obj: Object, now: float) -> list[Json]:
    """A ConfigMap's cells."""
    size = len(child(obj, "data")) + len(child(obj, "binaryData"))
    return [metadata(obj).get("name"), str(size), created(obj, now)]


def secret(obj: Object, now: float) -> list[Json]:
    """A Secret's cells."""
    return [metadata(obj).get("name"), obj.get("type"), str(len(child(obj, "data"))), created(obj, now)]


def lease(obj: Object, now: float) -> list[Json]:
    """A Lease's cells."""
    return [metadata(obj).get("name"), child(obj, "spec").get("holderIdentity") or "", created(obj, now)]


def priority_class(obj: Object, now: float) -> list[Json]:
    """A PriorityClass's cells."""
    default = bool(obj.get("globalDefault"))
    return [metadata(obj).get("name"), obj.get("value"), default, created(obj, now), obj.get("preemptionPolicy")]


def disruption_budget(obj: Object, now: float) -> list[Json]:
    """A PodDisruptionBudget's cells."""
    spec = child(obj, "spec")

    def bound(name: str) -> str:
        return str(spec[name]) if spec.get(name) is not None else "N/A"

    allowed = child(obj, "status").get("disruptionsAllowed", 0)
    name = metadata(obj).get("name")
    return [name, bound("minAvailable"), bound("maxUnavailable"), allowed, created(obj, now)]


MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(value: Json) -> str:
    held = [str(mode) for mode in value] if isinstance(value, list) else []
    return ",".join(short for mode, short in MODES.items() if mode in held)


def _phase(obj: Object) -> str:
    going = metadata(obj).get("deletionTimestamp")
    return "Terminating" if going else str(child(obj, "status").get("phase") or "")


def claim(obj: Object, now: float) -> list[Json]:
    """A PersistentVolumeClaim's cells."""
    spec, status = child(obj, "spec"), child(obj, "status")
    bound = bool(spec.get("volumeName"))
    return [
        metadata(obj).get("name"),
        _phase(obj),
        spec.get("volumeName") or "",
        child(status, "capacity").get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        created(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def volume(obj: Object, now: float) -> list[Json]:
    """A PersistentVolume's cells."""
    spec, reference = child(obj, "spec"), child(obj, "spec", "claimRef")
    return [
        metadata(obj).get("name"),
        child(spec, "capacity").get("storage") or "",
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy"),
        _phase(obj),
        f"{reference.get('namespace')}/{reference['name']}" if reference.get("name") else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or UNSET,
        child(obj, "status").get("reason") or "",
        created(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def storage_class(obj: Object, now: float) -> list[Json]:
    """A StorageClass's cells."""
    name = str(metadata(obj).get("name"))
    if child(metadata(obj), "annotations").get("storageclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    expands = str(bool(obj.get("allowVolumeExpansion"))).lower()
    policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
    return [name, obj.get("provisioner"), policy, mode, expands, created(obj, now)]


def role_binding(obj: Object, now: float) -> list[Json]:
    """A RoleBinding's or ClusterRoleBinding's cells."""
    reference, subjects = child(obj, "roleRef"), objects(obj.get("subjects"))

    def named(kind: str) -> str:
        return ", ".join(
            f"{s.get('namespace')}/{s.get('name')}" if kind == "ServiceAccount" else str(s.get("name"))
            for s in subjects
            if s.get("kind") == kind
        )

    role = f"{reference.get('kind')}/{reference.get('name')}"
    name = metadata(obj).get("name")
    return [name, role, created(obj, now), named("User"), named("Group"), named("ServiceAccount")]


def plain(obj: Object, now: float) -> list[Json]:
    """The cells of a kind that shows its name and age."""
    return [metadata(obj).get("name"), created(obj, now)]


def resource_claim(obj: Object, now: float) -> list[Json]:
    """A ResourceClaim's cells."""
    meta, status = metadata(obj), child(obj, "status")
    going, allocated = bool(meta.get("deletionTimestamp")), bool(status.get("allocation"))
    states = ["deleted"] * going + (["allocated"] if allocated else ["pending"] * (not going))
    states += ["reserved"] * (allocated and bool(status.get("reservedFor")))
    return [meta.get("name"), ",".join(states), created(obj, now)]


def resource_slice(obj: Object, now: float) -> list[Json]:
    """A ResourceSlice's cells."""
    spec = child(obj, "spec")
    name, node = metadata(obj).get("name"), spec.get("nodeName") or UNSET
    return [name, node, spec.get("driver"), child(spec, "pool").get("name"), created(obj, now)]


def csi_node(obj: Object, now: float) -> list[Json]:
    """A CSINode's cells."""
    return [metadata(obj).get("name"), len(objects(child(obj, "spec").get("drivers"))), created(obj, now)]


def jsonpath(obj: Object, path: str) -> Json:
    """The value at a simple JSONPath (`.spec.x`, `.status.conditions[0].type`, `["a.b"]`); None for none."""
    value: Json = obj
    for step in path.replace("[", ".[").split("."):
        if not step:
            continue
        bare = step.strip("[]'\"")
        if isinstance(value, dict):
            value = value.get(bare)
        elif isinstance(value, list) and bare.isdecimal() and int(bare) < len(value):
            value = value[int(bare)]
        else:
            return None
    return value


CELLS: dict[str, Callable[[Object, float], list[Json]]] = {
    "Pod": pod,
    "Node": node,
    "Event": event,
    "Service": service,
    "Namespace": namespace,
    "ConfigMap": config_map,
    "Secret": secret,
    "Lease": lease,
    "PriorityClass": priority_class,
    "PodDisruptionBudget": disruption_budget,
    "ReplicaSet": replica_set,
    "ReplicationController": replica_set,
    "Deployment": deployment,
    "StatefulSet": stateful_set,
    "PersistentVolumeClaim": claim,
    "PersistentVolume": volume,
    "StorageClass": storage_class,
    "DaemonSet": daemon_set,
    "Job": job,
    "CronJob": cron_job,
    "ServiceAccount": plain,
    "DeviceClass": plain,
    "ResourceClaim": resource_claim,
    "ResourceClaimTemplate": plain,
    "ResourceSlice": resource_slice,
    "CSINode": csi_node,
    "RoleBinding": role_binding,
    "ClusterRoleBinding": role_binding,
}
