"""What a scenario changes at times: cordons, drains, failures, edits, deletions, other policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from functools import partial

from msgspec.structs import replace

from policyengine.cluster.kinds import GIVEN, GIVEN_BESIDE, NAMESPACE, decode_given, kind_of
from policyengine.cluster.objects import ObjectError
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.profile import Profile
from policyengine.scheduler.messages import ObjectDeleted, ObjectObserved, ProfileReplaced
from policyengine.trials.play import Play
from policyengine.trials.scenario import Clause, Json, Place, ScenarioError

UNREACHABLE = "node.kubernetes.io/unreachable"
TOLERATED = 300.0
"""Seconds that pods stay on a node that nobody reaches, as Kubernetes' default tolerations say."""


def plan_changes(play: Play, profiles: Mapping[int, Sequence[Profile]]) -> None:
    """Have the scenario's changes happen at their times; `profiles`: the policies they bring, by index."""
    for index, item in enumerate(play.scenario.objects):
        play.plan(0.0, partial(_see_object, play, item, ("objects", index)))
    for index, change in enumerate(play.scenario.changes):
        if change.what == "policy":
            play.plan(change.said["at"], partial(play.trial.see, *map(ProfileReplaced, profiles.get(index, ()))))
        else:
            play.plan(change.said["at"], partial(_CHANGES[change.what], play, change))


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern matches; one of pods without a namespace matches in every one."""
    return [name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)]


# --- nodes --------------------------------------------------------------------------------------------


def _meant(change: Clause, kind: str, come: Iterable[str]) -> str:
    """The pattern that says which nodes or pods are meant; one of those that have come by then fits it."""
    pattern: str = change.said[change.what]
    if not matching(pattern, come):
        raise ScenarioError(f"no {kind} that has come by then is called `{pattern}`", (*change.place, change.what))
    return pattern


def _nodes(play: Play, change: Clause) -> list[str]:
    """The nodes that are meant and there, in the order they came."""
    return matching(_meant(change, "node", play.ledger.nodes), play.node_items)


def _edit_node(play: Play, name: str, place: Place, edit: Callable[[Json], object]) -> None:
    """Clause a node, if it is there."""
    if name in play.node_items:
        item = deepcopy(play.node_items[name])
        edit(item)
        play.show_node(item, place)


def _cordon(play: Play, change: Clause) -> None:
    flag = {"unschedulable": change.what != "uncordon"}
    for name in _nodes(play, change):
        _edit_node(play, name, change.place, lambda item: item["spec"].update(flag))


def _drain(play: Play, change: Clause) -> None:
    _cordon(play, change)
    for name in _nodes(play, change):
        play.end_pods_on(name, "drained")


def _remove(play: Play, change: Clause) -> None:
    for name in _nodes(play, change):
        play.remove_node(name)


def _fail(play: Play, change: Clause) -> None:
    """The node does not answer any more; its pods are given up after a while, unless it is back. It is back when the
    last of its failures is over."""
    until = play.at + change.said.get("for", float("inf"))
    for name in _nodes(play, change):
        since, before = play.failures.get(name, (play.at, 0.0))
        play.failures[name] = since, max(before, until)
        _edit_node(play, name, change.place, lambda item: _set_ready(item, "Unknown"))
        if since == play.at:
            play.plan(since + TOLERATED, partial(_give_up, play, name, since))
        if until < float("inf"):
            play.plan(until, partial(_end_failure, play, name, change.place))


def _give_up(play: Play, name: str, since: float) -> None:
    began, until = play.failures.get(name, (0.0, 0.0))
    if began == since and until > play.at:
        play.end_pods_on(name, "lost")


def _end_failure(play: Play, name: str, place: Place) -> None:
    if name in play.failures and play.failures[name][1] <= play.at:
        del play.failures[name]
        _edit_node(play, name, place, lambda item: _set_ready(item, "True"))


def _set_ready(item: Json, status: str) -> None:
    item["status"]["conditions"] = [{"type": "Ready", "status": status}]
    others = [taint for taint in item["spec"]["taints"] if taint["key"] != UNREACHABLE]
    effects = () if status == "True" else ("NoSchedule", "NoExecute")
    item["spec"]["taints"] = others + [{"key": UNREACHABLE, "effect": effect} for effect in effects]


def _node(play: Play, change: Clause) -> None:
    for name in _nodes(play, change):
        _edit_node(play, name, change.place, lambda item: _apply(item, change.said))


def _apply(item: Json, said: Json) -> None:
    for key in ("labels", "annotations"):
        if key in said:
            item["metadata"][key] = _edited(item["metadata"][key], said[key])
    if "taints" in said:
        item["spec"]["taints"] = said["taints"]
    item["status"]["allocatable"].update(said.get("allocatable", {}))


def _edited(texts: Mapping[str, str], edit: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**texts, **edit}.items() if value is not None}


# --- pods ---------------------------------------------------------------------------------------------


def _pods(play: Play, change: Clause) -> list[str]:
    """UIDs of the pods that are meant and there, in the order they came."""
    pods = play.ledger.pods
    pattern = _meant(change, "pod", (record.name for record in pods.values()))
    return [uid for uid in play.pods if matching(pattern, (pods[uid].name,))]


def _end(play: Play, change: Clause) -> None:
    for uid in _pods(play, change):
        if change.what == "delete":
            play.end_pod(uid, "deleted")
        elif play.ledger.pods[uid].bound is not None:
            play.end_pod(uid, "finished")


def _pod(play: Play, change: Clause) -> None:
    for uid in _pods(play, change):
        play.change_pod(uid, partial(_edited_pod, change.said))


def _edited_pod(said: Json, pod: Pod) -> Pod:
    metadata, spec = pod.metadata, pod.spec
    if "labels" in said:
        metadata = replace(metadata, labels=_edited(metadata.labels, said["labels"]))
    if "ungate" in said:
        spec = replace(spec, scheduling_gates=())
    if "priority" in said:
        spec = replace(spec, priority=said["priority"])
    return replace(pod, metadata=metadata, spec=spec)


# --- others -------------------------------------------------------------------------------------------


def _object(play: Play, change: Clause) -> None:
    _see_object(play, change.said["object"], (*change.place, "object"))


def _see_object(play: Play, item: Json, place: Place) -> None:
    kind = _kind(item, place)
    try:
        play.trial.see(ObjectObserved(kind, decode_given(GIVEN[kind], item)))
    except ObjectError as error:
        raise ScenarioError(str(error), place) from None


def _remove_object(play: Play, change: Clause) -> None:
    item = change.said["removeObject"]
    kind = _kind(item, (*change.place, "removeObject"))
    metadata = item["metadata"]
    namespace = metadata.get("namespace") or NAMESPACE if GIVEN[kind].is_namespaced else ""
    play.trial.see(ObjectDeleted(kind, namespace, metadata["name"]))


def _kind(item: Json, place: Place) -> str:
    kind = str(item["kind"])
    if kind not in GIVEN_BESIDE:
        known = ", ".join(GIVEN_BESIDE)
        raise ScenarioError(f"`{kind}` is no kind of object that a scenario gives; there are {known}", (*place, "kind"))
    return kind_of(item)


_CHANGES: Mapping[str, Callable[[Play, Clause], None]] = {
    "cordon": _cordon,
    "uncordon": _cordon,
    "drain": _drain,
    "remove": _remove,
    "fail": _fail,
    "node": _node,
    "delete": _end,
    "finish": _end,
    "pod": _pod,
    "object": _object,
    "removeObject": _remove_object,
}
"""What a change says -> the function that makes it happen."""
