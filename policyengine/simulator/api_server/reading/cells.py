"""The cells `kubectl get` prints that no path leads to (pkg/printers/internalversion).

A cell is a function of the object, the time and the arguments `kinds/schemas/columns.txt` gives it there.
"""

import re
from collections.abc import Callable

from policyengine.cluster.pod_info import seconds_or_none
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object, child, metadata, objects

NONE, UNKNOWN = "<none>", "<unknown>"
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
FILTER = re.compile(r'(.*)\[\?\(@\.(\w+) *== *["\']([^"\']*)["\']\)\](.*)')
ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


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
    seconds = seconds_or_none(stamp)
    return UNKNOWN if seconds is None else human_duration(now - seconds)


def jsonpath(obj: Json, path: str) -> Json:
    """The value at a simple JSONPath (`.spec.x`, `.status.conditions[0].type`, `["a.b"]`); None for none. A filter
    (`[?(@.type=="Ready")]`) gives the first that it holds for; of paths between commas one with a value counts."""
    first, comma, others = path.partition(",")
    if comma:
        return jsonpath(obj, first) or jsonpath(obj, others)
    value = obj
    if filtered := FILTER.fullmatch(path):
        before, name, wanted, path = filtered.groups()
        value = next((one for one in objects(jsonpath(obj, before)) if one.get(name) == wanted), None)
    for step in path.replace("[", ".[").split("."):
        bare = step.strip("[]'\"")
        if isinstance(value, dict) and step:
            value = value.get(bare)
        elif isinstance(value, list) and bare.isdecimal() and int(bare) < len(value):
            value = value[int(bare)]
        elif step:
            return None
    return value


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _conditions(obj: Object) -> dict[str, Json]:
    return {str(one.get("type")): one.get("status") for one in objects(child(obj, "status").get("conditions"))}


def age(obj: Object, now: float, path: str = ".metadata.creationTimestamp") -> Json:
    """How long ago the time at a path was."""
    return elapsed(jsonpath(obj, path), now)


def _text(obj: Object, now: float, path: str, empty: str) -> Json:
    """The value at a path as text."""
    value = jsonpath(obj, path)
    return empty if value is None else str(value).lower()


def _number(obj: Object, now: float, *paths: str) -> Json:
    """How many items the lists or maps at some paths have."""
    held = [jsonpath(obj, path) for path in paths]
    return sum(len(one) for one in held if isinstance(one, list | dict))


def _count_text(obj: Object, now: float, *paths: str) -> Json:
    return str(_number(obj, now, *paths))


def _names(obj: Object, now: float, path: str, name: str) -> Json:
    """One field of every item of a list, between commas."""
    return ",".join(str(one.get(name)) for one in objects(jsonpath(obj, path)))


def _labels(obj: Object, now: float, path: str) -> Json:
    """Labels in order, e.g. `a=b,c=d`; of a selector those it matches."""
    held = jsonpath(obj, path)
    held = held.get("matchLabels", held) if isinstance(held, dict) else {}
    return ",".join(f"{k}={v}" for k, v in sorted(held.items())) or NONE if isinstance(held, dict) else NONE


def _ratio(obj: Object, now: float, part: str, whole: str) -> Json:
    """Two counts as `part/whole`."""
    return f"{jsonpath(obj, part) or 0}/{jsonpath(obj, whole) or 0}"


def _access_modes(obj: Object, now: float, path: str) -> Json:
    held = jsonpath(obj, path)
    return ",".join(word for mode, word in ACCESS_MODES.items() if isinstance(held, list) and mode in held)


def _container_reason(status: Object) -> str:
    state = child(status, "state")
    waiting, ended = child(state, "waiting"), child(state, "terminated")
    if waiting.get("reason") or not ended:
        return str(waiting.get("reason") or "")
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


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
    return str(sum(_count(row.get("restartCount")) for row in objects(child(obj, "status").get("containerStatuses"))))


def _pod_readiness_gates(obj: Object, now: float) -> Json:
    gates, held = objects(jsonpath(obj, ".spec.readinessGates")), _conditions(obj)
    true = sum(held.get(str(one.get("conditionType"))) == "True" for one in gates)
    return f"{true}/{len(gates)}" if gates else NONE


def _node_status(obj: Object, now: float) -> Json:
    ready = _conditions(obj).get("Ready")
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return word + (",SchedulingDisabled" if child(obj, "spec").get("unschedulable") else "")


def _node_roles(obj: Object, now: float) -> Json:
    prefix = "node-role.kubernetes.io/"
    held = child(metadata(obj), "labels")
    return ",".join(sorted(k.removeprefix(prefix) for k in held if k.startswith(prefix) and k != prefix)) or NONE


def _node_kernel(obj: Object, now: float) -> Json:
    info = child(obj, "status", "nodeInfo")
    machine = info.get("architecture")
    return str(info.get("kernelVersion") or UNKNOWN) + (f" ({machine})" if machine else "")


# Events, in their core/v1 form


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
    ports = objects(child(obj, "spec").get("ports"))
    return ",".join(f"{port.get('port')}/{port.get('protocol')}" for port in ports) or NONE


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
    began, ended = (seconds_or_none(child(obj, "status").get(name)) for name in ("startTime", "completionTime"))
    return "" if began is None else human_duration((now if ended is None else ended) - began)


def _volume_phase(obj: Object, now: float) -> Json:
    return "Terminating" if metadata(obj).get("deletionTimestamp") else child(obj, "status").get("phase") or ""


def _volume_claim(obj: Object, now: float) -> Json:
    reference = child(obj, "spec", "claimRef")
    return f"{reference.get('namespace')}/{reference['name']}" if reference.get("name") else ""


def _class_name(obj: Object, now: float) -> Json:
    default = child(metadata(obj), "annotations").get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{metadata(obj).get('name')}{' (default)' if default else ''}"


def _claim_state(obj: Object, now: float) -> Json:
    going, status = bool(metadata(obj).get("deletionTimestamp")), child(obj, "status")
    allocated = bool(status.get("allocation"))
    states = ["deleted"] * going + (["allocated"] if allocated else ["pending"] * (not going))
    return ",".join(states + ["reserved"] * (allocated and bool(status.get("reservedFor"))))


CELLS: dict[str, Callable[..., Json]] = {
    "age": age,
    "text": _text,
    "number": _number,
    "count": _count_text,
    "names": _names,
    "labels": _labels,
    "ratio": _ratio,
    "access_modes": _access_modes,
    "pod_status": _pod_status,
    "pod_ready": _pod_ready,
    "pod_restarts": _pod_restarts,
    "pod_readiness_gates": _pod_readiness_gates,
    "node_status": _node_status,
    "node_roles": _node_roles,
    "node_kernel": _node_kernel,
    "event_object": _event_object,
    "event_source": _event_source,
    "service_ports": _service_ports,
    "job_status": _job_status,
    "job_completions": _job_completions,
    "job_duration": _job_duration,
    "volume_phase": _volume_phase,
    "volume_claim": _volume_claim,
    "class_name": _class_name,
    "claim_state": _claim_state,
}
"""By the name they go by in `columns.txt`."""
