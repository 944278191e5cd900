"""What the real server fills into workloads: apps/v1, batch/v1, autoscaling/v2."""

from copy import deepcopy

from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, child, objects
from policyengine.simulator.api_server.writing.pod_defaults import fill, pod_spec

MAX_INT32 = 2**31 - 1
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _open(spec: Object, **values: Json) -> None:
    """Set each field that is absent; nought and False are values."""
    for name, value in values.items():
        if spec.get(name) is None:
            spec[name] = value


def claim_template(claim: Object) -> None:
    """What a claim has from the start, in a template too."""
    fill(child(claim, "spec"), volumeMode="Filesystem")
    if isinstance(claim.get("status"), dict):
        fill(child(claim, "status"), phase="Pending")


def _template(obj: Object) -> Object:
    spec = child(obj, "spec")
    template_spec = child(spec, "template", "spec")
    if template_spec:
        pod_spec(template_spec)
    return spec


def deployment(obj: Object) -> None:
    """A Deployment's defaults."""
    spec = _template(obj)
    _open(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.get("strategy")
    strategy = spec["strategy"] = strategy if isinstance(strategy, dict) else {}
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        given = rolling if isinstance(rolling, dict) else {}
        strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **given}


def replicated(obj: Object) -> None:
    """A ReplicaSet's or ReplicationController's defaults."""
    spec = _template(obj)
    _open(spec, replicas=1)


def stateful_set(obj: Object) -> None:
    """A StatefulSet's defaults."""
    spec = _template(obj)
    fill(spec, podManagementPolicy="OrderedReady")
    _open(spec, replicas=1, revisionHistoryLimit=10)
    if not child(spec, "updateStrategy"):
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    if spec.get("persistentVolumeClaimRetentionPolicy") is None:
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    for claim in objects(spec.get("volumeClaimTemplates")):
        claim_template(claim)


def daemon_set(obj: Object) -> None:
    """A DaemonSet's defaults; an annotation counts its templates."""
    spec = _template(obj)
    meta = child(obj, "metadata")
    meta["annotations"] = {TEMPLATE_GENERATION: "1", **child(meta, "annotations")}
    _open(spec, revisionHistoryLimit=10)
    if not child(spec, "updateStrategy"):
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
        }


def job(obj: Object) -> None:
    """A Job's defaults; without labels of its own it shares those of its pods, one object with them."""
    _job_spec(_template(obj))
    meta, labels = child(obj, "metadata"), child(obj, "spec", "template", "metadata").get("labels")
    if labels and not meta.get("labels"):
        meta["labels"] = labels


def _job_spec(spec: Object) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    fill(spec, completionMode="NonIndexed", podReplacementPolicy=replacement)
    retries = 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32
    _open(spec, parallelism=1, backoffLimit=retries, suspend=False, manualSelector=False)


def cron_job(obj: Object) -> None:
    """A CronJob's defaults; those of its jobs are filled in when they are made, a pod's already here."""
    spec = child(obj, "spec")
    template = child(spec, "jobTemplate", "spec", "template", "spec")
    if template:
        pod_spec(template)
    fill(spec, concurrencyPolicy="Allow")
    _open(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


_SCALE_UP: dict[str, Json] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: dict[str, Json] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def horizontal_pod_autoscaler(obj: Object) -> None:
    """A HorizontalPodAutoscaler's defaults: 80 per cent of the CPU asked for; rules only where behavior is given."""
    spec = child(obj, "spec")
    _open(spec, minReplicas=1)
    if not spec.get("metrics"):
        target: Json = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        behavior["scaleUp"] = {**deepcopy(_SCALE_UP), **child(behavior, "scaleUp")}
        behavior["scaleDown"] = {**deepcopy(_SCALE_DOWN), **child(behavior, "scaleDown")}
