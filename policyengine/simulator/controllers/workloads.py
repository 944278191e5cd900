"""Deployments, ReplicaSets, StatefulSets and Jobs: their pods, their status, and garbage collection.

A Deployment whose template changed replaces all its pods at once; there are no steps in between. A Job's pods end by
themselves after `JOB_SECONDS`, unless their template says otherwise: no container runs here that could.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from policyengine.simulator.controllers.controller_client import (
    MERGE,
    PATHS,
    Cluster,
    Object,
    Write,
    delete,
    finished,
    free_names,
    of,
    owned_by,
    path,
    pod_of,
    ready,
    status,
    suffix,
    terminating,
)
from policyengine.simulator.controllers.kubelet import RUN_FOR

HASH = "pod-template-hash"
INDEX = "apps.kubernetes.io/pod-index"
POD_NAME = "statefulset.kubernetes.io/pod-name"
REVISION = "deployment.kubernetes.io/revision"
JOB_SECONDS = "5s"
APPS, BATCH = "apps/v1", "batch/v1"


def replica_sets(cluster: Cluster, now: str) -> Iterator[Write]:
    """As many pods as wished for; those go first that run nowhere."""
    for owner in cluster.all("ReplicaSet"):
        held = cluster.owned("Pod", owner)
        live = [pod for pod in held if not terminating(pod) and not finished(pod)]
        desired = owner["spec"].get("replicas", 1)
        if not terminating(owner):
            made = owned_by("ReplicaSet", owner, APPS)
            for name in islice(free_names(owner, held), max(0, desired - len(live))):
                pod = pod_of(owner["spec"]["template"], name, made)
                yield Write("POST", path("Pod", owner["metadata"]["namespace"]), pod)
            order = sorted(live, key=lambda pod: (ready(pod), bool(pod["spec"].get("nodeName"))))
            yield from (delete("Pod", pod) for pod in order[: max(0, len(live) - desired)])
        up = sum(map(ready, live))
        counts = {"replicas": len(live), "fullyLabeledReplicas": len(live), "readyReplicas": up}
        seen = {"availableReplicas": up, "observedGeneration": owner["metadata"].get("generation", 0)}
        yield from status("ReplicaSet", owner, {**counts, **seen})


def deployments(cluster: Cluster, now: str) -> Iterator[Write]:
    """One ReplicaSet for each template there was; only the newest has pods."""
    for owner in cluster.all("Deployment"):
        spec, meta = owner["spec"], owner["metadata"]
        hashed = suffix(json.dumps(spec["template"], sort_keys=True), length=9)
        sets = cluster.owned("ReplicaSet", owner)
        newest = next((one for one in sets if one["metadata"]["labels"].get(HASH) == hashed), None)
        desired = spec.get("replicas", 1)
        if not terminating(owner):
            if newest is None:
                yield Write("POST", path("ReplicaSet", meta["namespace"]), _replica_set(owner, hashed, len(sets) + 1))
            for one in sets:
                count = desired if one is newest else 0
                if one["spec"].get("replicas") != count:
                    yield Write("PATCH", of("ReplicaSet", one), {"spec": {"replicas": count}}, MERGE)
        yield from status("Deployment", owner, _deployment_status(owner, sets, newest, now))


def _replica_set(owner: Object, hashed: str, revision: int) -> Object:
    spec, template = owner["spec"], owner["spec"]["template"]
    labels = {**(template["metadata"].get("labels") or {}), HASH: hashed}
    selector = spec["selector"]
    matched = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: hashed}}
    meta = {
        "name": f"{owner['metadata']['name']}-{hashed}",
        "labels": labels,
        "annotations": {REVISION: str(revision)},
        "ownerReferences": owned_by("Deployment", owner, APPS),
    }
    made = {**template, "metadata": {**template["metadata"], "labels": labels}}
    desired = {"replicas": spec.get("replicas", 1), "selector": matched, "template": made}
    return {"apiVersion": APPS, "kind": "ReplicaSet", "metadata": meta, "spec": desired}


def _deployment_status(owner: Object, sets: list[Object], newest: Object | None, now: str) -> Object:
    def total(name: str, of_sets: list[Object]) -> int:
        return sum((one.get("status") or {}).get(name) or 0 for one in of_sets)

    desired = owner["spec"].get("replicas", 1)
    up = total("availableReplicas", sets)
    updated = total("replicas", [newest] if newest else [])
    done = updated == desired and total("replicas", sets) == desired and up == desired
    available = ("True", "MinimumReplicasAvailable") if up >= desired else ("False", "MinimumReplicasUnavailable")
    conditions = [
        ("Available", *available),
        ("Progressing", "True", "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"),
    ]
    return {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "replicas": total("replicas", sets),
        "updatedReplicas": updated,
        "readyReplicas": total("readyReplicas", sets),
        "availableReplicas": up,
        "unavailableReplicas": max(0, desired - up),
        "conditions": [_condition(owner, *one, now) for one in conditions],
    }


def _condition(owner: Object, type_: str, word: str, reason: str, now: str) -> Object:
    held: Object = next(
        (one for one in (owner.get("status") or {}).get("conditions") or [] if one["type"] == type_), {}
    )
    if (held.get("status"), held.get("reason")) == (word, reason):
        return held
    since = held["lastTransitionTime"] if held.get("status") == word else now
    return {"type": type_, "status": word, "reason": reason, "lastUpdateTime": now, "lastTransitionTime": since}


def stateful_sets(cluster: Cluster, now: str) -> Iterator[Write]:
    """Pods with numbers, one after the other; the highest goes first."""
    for owner in cluster.all("StatefulSet"):
        spec = owner["spec"]
        held = {pod["metadata"]["name"]: pod for pod in cluster.owned("Pod", owner)}
        desired = spec.get("replicas", 1)
        if not terminating(owner):
            yield from _numbered(cluster, owner, held, desired)
        live = [pod for pod in held.values() if not terminating(pod)]
        up = sum(map(ready, live))
        counts = {"replicas": len(live), "readyReplicas": up, "availableReplicas": up, "currentReplicas": len(live)}
        seen = {"updatedReplicas": len(live), "observedGeneration": owner["metadata"].get("generation", 0)}
        yield from status("StatefulSet", owner, {**counts, **seen})


def _numbered(cluster: Cluster, owner: Object, held: dict[str, Object], desired: int) -> Iterator[Write]:
    name, in_order = owner["metadata"]["name"], owner["spec"].get("podManagementPolicy") != "Parallel"
    for number in range(desired):
        pod = held.get(f"{name}-{number}")
        if pod is None:
            yield from _claims_and_pod(cluster, owner, number)
        elif finished(pod) and not terminating(pod):
            yield delete("Pod", pod)
        if in_order and (pod is None or not ready(pod)):
            return
    beyond = [pod for at, pod in held.items() if int(at.rpartition("-")[2]) >= desired and not terminating(pod)]
    beyond.sort(key=lambda pod: -int(pod["metadata"]["name"].rpartition("-")[2]))
    yield from (delete("Pod", pod) for pod in (beyond[:1] if in_order else beyond))


def _claims_and_pod(cluster: Cluster, owner: Object, number: int) -> Iterator[Write]:
    spec, meta = owner["spec"], owner["metadata"]
    name = f"{meta['name']}-{number}"
    pod = pod_of(spec["template"], name, owned_by("StatefulSet", owner, APPS), **{POD_NAME: name, INDEX: str(number)})
    volumes: dict[str, Any] = {one["name"]: one for one in pod["spec"].get("volumes") or []}
    for template in spec.get("volumeClaimTemplates") or []:
        claim = f"{template['metadata']['name']}-{name}"
        volumes[template["metadata"]["name"]] = {
            "name": template["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim},
        }
        if (meta["namespace"], claim) not in cluster.kinds["PersistentVolumeClaim"]:
            labels = spec["selector"].get("matchLabels") or {}
            made = {"metadata": {"name": claim, "labels": labels}, "spec": template["spec"]}
            yield Write("POST", path("PersistentVolumeClaim", meta["namespace"]), made)
    more = {"hostname": name, "subdomain": spec.get("serviceName") or "", "volumes": list(volumes.values())}
    yield Write("POST", path("Pod", meta["namespace"]), {**pod, "spec": {**pod["spec"], **more}})


def jobs(cluster: Cluster, now: str) -> Iterator[Write]:
    """Pods until enough have succeeded, or too many failed."""
    for owner in cluster.all("Job"):
        spec, told = owner["spec"], owner.get("status") or {}
        if terminating(owner) or any(one["status"] == "True" for one in told.get("conditions") or []):
            continue
        pods = cluster.owned("Pod", owner)
        won = sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in pods)
        lost = sum((pod.get("status") or {}).get("phase") == "Failed" for pod in pods)
        live = [pod for pod in pods if not finished(pod) and not terminating(pod)]
        ends = _job_end(spec, won, lost, len(live), now)
        desired = 0 if ends or spec.get("suspend") else _at_once(spec, won)
        if len(live) > desired:
            yield from (delete("Pod", pod) for pod in live[desired:])
        meta, made = owner["metadata"], owned_by("Job", owner, BATCH)
        for name in islice(free_names(owner, pods), max(0, desired - len(live))):
            pod = pod_of(spec["template"], name, made)
            pod["metadata"]["annotations"] = {RUN_FOR: JOB_SECONDS, **pod["metadata"].get("annotations", {})}
            yield Write("POST", path("Pod", meta["namespace"]), pod)
        counts = {"active": 0 if ends else len(live), "succeeded": won, "failed": lost, "terminating": 0}
        began = {} if spec.get("suspend") else {"startTime": told.get("startTime") or now}
        counts["ready"] = 0 if ends else sum(map(ready, live))
        if not ends or len(live) == 0:
            yield from status("Job", owner, {**counts, **began, "uncountedTerminatedPods": {}, **ends})


def _at_once(spec: Object, won: int) -> int:
    """How many pods are to run now."""
    left: int = spec["completions"] - won if spec.get("completions") is not None else spec.get("parallelism", 1)
    most: int = spec.get("parallelism", 1)
    return max(0, min(most, left))


def _job_end(spec: Object, won: int, lost: int, live: int, now: str) -> Object:
    """What a job that has ended says; empty while it goes on."""
    needed = spec.get("completions")
    if lost > spec.get("backoffLimit", 6):
        reasons = [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
        return {"conditions": [_said(type_, reason, now) for type_, reason in reasons]}
    if (won >= needed) if needed is not None else (won > 0 and live == 0):
        reasons = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
        return {"completionTime": now, "conditions": [_said(type_, reason, now) for type_, reason in reasons]}
    return {}


def _said(type_: str, reason: str, now: str) -> Object:
    return {"type": type_, "status": "True", "reason": reason, "lastProbeTime": now, "lastTransitionTime": now}


# Garbage collection (https://kubernetes.io/docs/concepts/architecture/garbage-collection/)

OWNERS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def owners(cluster: Cluster, now: str) -> Iterator[Write]:
    """Delete what lost its last owner; end the deletion of owners whose dependents are gone."""
    alive = {one["metadata"]["uid"] for kind in OWNERS for one in cluster.all(kind)}
    dependents: dict[str, list[tuple[str, Object]]] = {}
    for kind in PATHS:
        for one in cluster.all(kind):
            references = [r for r in one["metadata"].get("ownerReferences") or [] if r["kind"] in OWNERS]
            for reference in references:
                dependents.setdefault(reference["uid"], []).append((kind, one))
            if references and not terminating(one) and not any(r["uid"] in alive for r in references):
                yield delete(kind, one)
    for kind in PATHS:
        for owner in cluster.all(kind):
            if terminating(owner):
                yield from _let_go(kind, owner, dependents.get(owner["metadata"]["uid"], []))


def _let_go(kind: str, owner: Object, dependents: list[tuple[str, Object]]) -> Iterator[Write]:
    finalizers = owner["metadata"].get("finalizers") or []
    for name in (FOREGROUND, ORPHAN):
        if name not in finalizers:
            continue
        for dependent_kind, one in dependents:
            if name == FOREGROUND and not terminating(one):
                yield delete(dependent_kind, one, "Foreground" if dependent_kind in OWNERS else "")
            elif name == ORPHAN:
                kept = [r for r in one["metadata"]["ownerReferences"] if r["uid"] != owner["metadata"]["uid"]]
                change = {"metadata": {"uid": one["metadata"]["uid"], "ownerReferences": kept or None}}
                yield Write("PATCH", of(dependent_kind, one), change, MERGE)
        if not dependents:
            left = [one for one in finalizers if one != name]
            change = {"metadata": {"resourceVersion": owner["metadata"]["resourceVersion"], "finalizers": left}}
            yield Write("PATCH", of(kind, owner), change, MERGE)
