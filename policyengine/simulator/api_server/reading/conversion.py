"""Between the version asked for and the version stored, for kinds that have two.

Events are stored as core/v1 and also served as events.k8s.io/v1, with other names for the same fields.
HorizontalPodAutoscalers are stored as autoscaling/v2; version 1 shows the CPU target alone.
"""

from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.reading.representation import Convert
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, child, objects

# events.k8s.io/v1 name -> core/v1 name
EVENT_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
CORE_NAMES = {core: new for new, core in EVENT_NAMES.items()}
# Fields one face always writes and the other leaves out when empty.
CORE_ALWAYS: dict[str, Json] = {"reportingComponent": "", "reportingInstance": ""}


def _event_to_core(obj: Object) -> Object:
    out = {EVENT_NAMES.get(name, name): value for name, value in obj.items()}
    return {**out, **{name: out.get(name, empty) for name, empty in CORE_ALWAYS.items()}}


def _event_from_core(obj: Object) -> Object:
    out = {CORE_NAMES.get(name, name): value for name, value in obj.items()}
    for name in ("reportingController", "reportingInstance"):
        if out.get(name) == "":
            del out[name]
    return out


def _autoscaler_to_v2(obj: Object) -> Object:
    out = dict(obj)
    spec = dict(child(obj, "spec"))
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        wanted: Json = {"type": "Utilization", "averageUtilization": target}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}]
    out["spec"] = spec
    status = dict(child(obj, "status"))
    status.pop("currentCPUUtilizationPercentage", None)
    status.setdefault("currentMetrics", None)
    out["status"] = status
    return out


def _autoscaler_to_v1(obj: Object) -> Object:
    out = dict(obj)
    spec = dict(child(obj, "spec"))
    for metric in objects(spec.pop("metrics", None)):
        resource = child(metric, "resource")
        if resource.get("name") == "cpu":
            spec["targetCPUUtilizationPercentage"] = child(resource, "target").get("averageUtilization")
    spec.pop("behavior", None)
    out["spec"] = spec
    kept = ("currentReplicas", "desiredReplicas", "lastScaleTime", "observedGeneration")
    out["status"] = {name: value for name, value in child(obj, "status").items() if name in kept}
    return out


def to_storage(kind: Kind, obj: Object) -> Object:
    """An object of `kind` as it is stored."""
    if kind.group == "events.k8s.io":
        return _event_to_core(obj)
    if kind.group == "autoscaling" and kind.version == "v1":
        return _autoscaler_to_v2(obj)
    return obj


def from_storage(kind: Kind, obj: Object) -> Object:
    """A stored object as `kind` shows it."""
    converter = converter_for(kind)
    return converter(obj) if converter else obj


def converter_for(kind: Kind) -> Convert | None:
    """How to show stored objects as `kind`; None where they lie in its version."""
    if kind.group == "events.k8s.io":
        return _event_from_core
    if kind.group == "autoscaling" and kind.version == "v1":
        return _autoscaler_to_v1
    return None
