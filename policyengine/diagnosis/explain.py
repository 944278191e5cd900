"""What a profile says about every pending pod of a cluster read from plain objects: the JSON of `policyengine explain`.

A cluster is a Kubernetes `List` (`kubectl get nodes,pods,… -A -o json`), or an object of lists (`nodes`, `pods`,
`pending`, `namespaces`, …). Pods without a node that are not finished are pending, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policyengine.cluster.kinds import BY_KIND, NODES, PODS, kind_of
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.diagnosis.suggest import suggest
from policyengine.framework.evaluator import Diagnosis, Evaluator, NodeScores
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.profile import Profile
from policyengine.framework.status import Status
from policyengine.plugins.preemption.default_preemption import DefaultPreemption

_FIELDS: Final[Mapping[str, str]] = {
    NODES.dump_key: NODES.kind,
    PODS.dump_key: PODS.kind,
    "pending": PODS.kind,
    **{kind.dump_key: kind.kind for kind in BY_KIND.values() if kind.dump_key},
}


class ClusterShapeError(ValueError):
    """The input is no cluster; the message says what was expected."""


@dataclass(slots=True)
class LoadedCluster:
    """A view, and the pods that wait, in the order given."""

    view: ClusterView
    pending: list[PodInfo] = field(default_factory=list)


def load_cluster(cluster: Mapping[str, Any], now: float = 0.0) -> LoadedCluster:
    """Read the objects into a view at the time `now`, in seconds since the epoch: it decides which pods that ended are
    still seen. Objects of kinds that scheduling does not read are passed over.

    Raises `ClusterShapeError` for a wrong shape, and `ObjectError` for a malformed object.
    """
    view = ClusterView()
    view.now = now
    waiting: list[str] = []
    # Pods come last: each is told its PodGroup when it comes.
    for kind, item in sorted(_objects(cluster), key=lambda listed: listed[0] == "Pod"):
        _refuse_controls(kind, item)
        if kind == "Node":
            view.add_or_update_node(decode(Node, item))
        elif kind == "Pod":
            change = view.add_or_update_pod(decode(Pod, item))
            if change.new is not None and not change.new.node_name and change.new.uid not in waiting:
                waiting.append(change.new.uid)
        elif kind in BY_KIND:
            view.set_object(kind, decode(BY_KIND[kind].type, item))
    return LoadedCluster(view, [view.pods[uid] for uid in waiting if uid in view.pods])


def _objects(cluster: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(kind, object), one after another."""
    if not isinstance(cluster, Mapping):
        raise ClusterShapeError("a cluster is a JSON object: a `List`, or one with `nodes` and `pods`")
    if "items" in cluster:
        for item in _listed(cluster, "items"):
            kind = item.get("kind")
            if not isinstance(kind, str):
                raise ClusterShapeError("an item of the list has no `kind`")
            yield kind_of(item), item
        return
    if not any(name in cluster for name in _FIELDS):
        raise ClusterShapeError(f"none of {', '.join(f'`{name}`' for name in ('nodes', 'pods', 'pending'))} is there")
    for name, kind in _FIELDS.items():
        for item in _listed(cluster, name):
            yield kind_of({**item, "kind": kind}), item


def _refuse_controls(kind: str, item: Mapping[str, Any]) -> None:
    """Raises ClusterShapeError for a control character in a name: no API server takes one."""
    metadata = item.get("metadata")
    for name in (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, Mapping) else ():
        if isinstance(name, str) and not name.isprintable():
            raise ClusterShapeError(f"{kind} {name!a} has a control character in its name; correct the object")


def _listed(cluster: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    items = cluster.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        raise ClusterShapeError(f"`{name}` is not a list")
    for item in items:
        if not isinstance(item, Mapping):
            raise ClusterShapeError(f"`{name}` holds something that is not an object")
        yield item


def explain(
    cluster: Mapping[str, Any],
    profile: Profile | Sequence[Profile],
    pod: str | None = None,
    suggestions: bool = False,
    now: float = 0.0,
) -> list[dict[str, Any]]:
    """Evaluate each pending pod, alone, against the cluster as it stands; none is placed.

    Of several profiles the one that serves the pod's scheduler name evaluates it, the
    first where none does. `pod` (`namespace/name`) picks one pod; KeyError where it does not wait. `now`: the policy's,
    in seconds since the epoch; a file tells none.
    Answer: per pod `{pod, preFilter?, rejected: {node: {plugin, code, reasons}}, scores: {node: {plugin: weighted
    score}}, total: {node: score}, chosen, preemption?}`; `chosen` is None where no node fits. `preemption`, only then:
    see `explain_preemption`. With `suggestions`, an entry without a node that fits has those that help: see `suggest`.
    """
    loaded = load_cluster(cluster, now)
    picked = [info for info in loaded.pending if pod is None or info.key == pod]
    if pod is not None and not picked:
        raise KeyError(pod)
    profiles = [profile] if isinstance(profile, Profile) else list(profile)
    evaluators = {one.scheduler_name: Evaluator(one) for one in profiles}
    default = evaluators[profiles[0].scheduler_name]
    view = loaded.view
    entries: list[dict[str, Any]] = []
    for one in picked:
        evaluator = evaluators.get(one.scheduler_name, default)
        entry = explain_pod(evaluator, one, view.snapshot(), view)
        if suggestions and entry["chosen"] is None and (found := suggest(evaluator, one, view)):
            entry["suggestions"] = found
        entries.append(entry)
    return entries


def explain_pod(
    evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, view: ClusterView | None = None
) -> dict[str, Any]:
    """One pod's entry. With the snapshot's view, nominated pods are minded and preemption is tried."""
    diagnosis = evaluator.filter(pod, snapshot) if view is None else filter_with_nominated(evaluator, view, pod)
    node_scores = evaluator.score(pod, snapshot, diagnosis)
    names = snapshot.nodes.names
    entry: dict[str, Any] = {"pod": pod.key}
    if diagnosis.pre_filter is not None:
        entry["preFilter"] = _status(diagnosis.pre_filter)
    entry["rejected"] = _rejected(diagnosis, snapshot)
    entry["scores"] = _scores(node_scores, names)
    entry["total"] = {
        names[row]: total for row, total in zip(node_scores.rows.tolist(), node_scores.total.tolist(), strict=True)
    }
    entry["chosen"] = names[node_scores.best(pod.uid)] if len(node_scores.rows) else None
    if view is not None and len(diagnosis.feasible) == 0:
        preemption = explain_preemption(evaluator, pod, diagnosis, view)
        if preemption is not None:
            entry["preemption"] = preemption
    return entry


def explain_preemption(
    evaluator: Evaluator, pod: PodInfo, diagnosis: Diagnosis, view: ClusterView
) -> dict[str, Any] | None:
    """`{eligible, why?, candidates: {node: {victims, pdbViolations}}, chosen}` for a pod that `diagnosis` found no
    node for. Every node is tried; victims are `namespace/name`, the most important first. None where the profile
    does not preempt.
    """
    plugin = next((one for one in evaluator.profile.post_filters if isinstance(one, DefaultPreemption)), None)
    if plugin is None:
        return None
    why = plugin.why_not_eligible(pod, diagnosis, evaluator, view)
    if why:
        return {"eligible": False, "why": why, "candidates": {}, "chosen": None}
    candidates, chosen = plugin.all_candidates(pod, diagnosis, evaluator, view)
    names = view.nodes.names
    return {
        "eligible": True,
        "candidates": {
            names[one.row]: {"victims": [victim.key for victim in one.victims], "pdbViolations": one.violations}
            for one in candidates
        },
        "chosen": None if chosen is None else names[chosen.row],
    }


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.wire_name, "reasons": list(status.reasons)}


def _rejected(diagnosis: Diagnosis, snapshot: Snapshot) -> dict[str, Any]:
    """{node: refusal}, by node name; empty where PreFilter refused the pod as a whole."""
    if diagnosis.pre_filter is not None:
        return {}
    feasible = set(diagnosis.feasible.tolist())
    table = snapshot.nodes
    return {
        name: _status(diagnosis.refusal(table.row_of[name]))
        for name in sorted(table.names)
        if table.row_of[name] not in feasible
    }


def _scores(node_scores: NodeScores, names: list[str]) -> dict[str, dict[str, int]]:
    shares = {plugin: scores.tolist() for plugin, scores in node_scores.per_plugin.items()}
    return {
        names[row]: {plugin: scores[place] for plugin, scores in shares.items()}
        for place, row in enumerate(node_scores.rows.tolist())
    }
