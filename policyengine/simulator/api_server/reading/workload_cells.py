"""The cells `kubectl get` prints for workloads."""

from policyengine.simulator.api_server.decoding.scalars import parse_seconds
from policyengine.simulator.api_server.reading.cell_texts import NONE, age, created, human_duration, labelled
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, child, metadata, objects


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
