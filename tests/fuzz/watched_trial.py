"""A trial whose every cycle is held against a naive interpreter of its policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from policyengine.cluster.events import FLUSH
from policyengine.framework.scoring import SCORED
from policyengine.language import ir
from policyengine.scheduler.actions import Action, Bind, DeleteVictim, Log
from policyengine.scheduler.pod_timeline import TimelineEntry
from policyengine.trials.trial import Driven, Trial, bare
from tests.compiler.naive_objects import Cluster, TheNode, ThePod
from tests.compiler.naive_policy import FAILED, NaivePolicy
from tests.compiler.worlds import NOW, Manifest
from tests.fuzz.policies import Written
from tests.fuzz.rules import begins

FINEST = 1e-6
"""Seconds that the clock of the scheduler, a double, still tells apart: a delay with less left is over."""


def manifest_of(kind: str, item: Any) -> Manifest:
    """An object as its manifest."""

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: known(one) for name, one in value.items() if one is not None}
        return [known(one) for one in value] if isinstance(value, list | tuple) else value

    return {"kind": kind, **known(msgspec.to_builtins(item))}


class Watched(Trial):
    """A trial whose every cycle is looked at."""

    def __init__(self, written: Written, groups: Sequence[Manifest], driven: Driven = bare) -> None:
        self.naive = NaivePolicy(written.plain, written.profile.policy_hash)
        self.text = written.plain.source.text
        self.fits = "base filters" in self.text
        self.groups = list(groups)
        self.namespaces: dict[str, Manifest] = {}
        self.wrong: list[str] = []
        self.looked = 0
        self.queued: dict[str, float] = {}
        self.flushed: set[str] = set()
        """Who was woken by the flush alone: refused again, it keeps its turn (docs/queueing.md)."""
        self.tries: dict[str, int] = {}
        super().__init__([written.profile], float(NOW), limit=3_000, driven=driven)

    # --- what there is -----------------------------------------------------------------------------------------

    def now_there(self) -> Cluster:
        nodes = [manifest_of("Node", node) for node in self.cluster.nodes.values()]
        pods = [manifest_of("Pod", pod) for pod in self.cluster.pods.values()]
        cluster = Cluster([*nodes, *pods, *self.groups, *self.namespaces.values()], int(self.now))
        for pod in cluster.pods:
            uid = pod["uid"]
            info = self.state.view.pods.get(uid)
            if info is not None and not pod.node and info.node_name:
                pod.reserved = info.node_name
            pod.queued_at = round(self.queued.get(uid, 0.0) * 10**9)
            pod.attempts = self.tries.get(uid, 0)
        return cluster

    def in_gang(self, pod: ThePod) -> bool:
        """Whether the pod's gang has members that ask for more than one."""
        found = self.naive.gang(pod)
        mates = [one for one in pod.cluster.pods if found is not None and self.naive.gang(one) == found]
        return found is not None and any(self._least(found[0], one) > 1 for one in mates)

    def _least(self, rule: ir.Gang, pod: ThePod) -> int:
        least = self.naive.value(rule.min, self.naive.place(pod))
        return 1 if least is FAILED else max(least, 1)

    # --- one cycle ---------------------------------------------------------------------------------------------

    def _cycle(self) -> bool:
        before = self.now_there()
        active = [pod for pod in before.pods if self.state.place(pod["uid"]) == "active"]
        tried = len(self.popped)
        moved = super()._cycle()
        popped = [before.pod(uid) for uid in self.popped[tried:]]
        actions = list(self._asked)
        if popped:
            self.looked += 1
            self.wrong += [f"{self.now - NOW:g} s: {one}" for one in self._look(popped, active, actions)]
        for pod in popped:
            self.tries[pod["uid"]] = self.tries.get(pod["uid"], 0) + 1
        return moved

    def _told(self, uid: str, line: TimelineEntry) -> None:
        super()._told(uid, line)
        if line.what == "woken" and line.details["event"] == FLUSH.label:
            self.flushed.add(uid)
        elif line.what in ("refused", "failed"):
            if line.what == "failed" or uid not in self.flushed:
                self.queued[uid] = self.now
            self.flushed.discard(uid)

    def _node_now(self, uid: str) -> str:
        info = self.state.view.pods.get(uid)
        return "" if info is None else info.node_name

    def _look(self, popped: list[ThePod], active: list[ThePod], actions: list[Action]) -> Iterator[str]:
        if any(map(self.in_gang, popped)):
            yield from self._gang(popped)
            return
        if not any(map(self.in_gang, active)):
            yield from self._turn(popped[0], active)
        yield from self._decided(popped[0], actions)

    def _turn(self, pod: ThePod, active: list[ThePod]) -> Iterator[str]:
        """Whether it was the pod's turn."""
        keys = {one["uid"]: self._key(one) for one in active}
        mine = self._key(pod)
        if self.naive.policy.queue.fair_by is not None:
            shares = {one["uid"]: self.share(one) for one in active}
            if shares and self.share(pod) > min(shares.values()):
                yield f"{pod['name']} is tried with a share of {self.share(pod)}, the least is {min(shares.values())}"
            tenant = self.naive.tenant(pod)
            keys = {one["uid"]: keys[one["uid"]] for one in active if self.naive.tenant(one) == tenant}
        if keys and min(keys.values()) < mine:
            yield f"{pod['name']} is tried before {min(keys, key=keys.__getitem__)}: {mine}, {min(keys.values())}"

    def _key(self, pod: ThePod) -> list[Any]:
        order = self.naive.order_key(self.naive.policy.queue.order, self.naive.place(pod))
        return [*order, pod.queued_at]  # of equals the one goes first that came first, which is not known here

    def share(self, pod: ThePod) -> Fraction:
        """The tenant's share of the resource of which it has most."""
        cluster, tenant = pod.cluster, self.naive.tenant(pod)
        weight = Fraction(dict(self.naive.policy.queue.fair_weights).get(tenant, 1.0))
        mine = [one for one in cluster.pods if one.node and self.naive.tenant(one) == tenant]
        found = [Fraction(0)]
        for name in ("cpu", "memory", "storage", "nvidia.com/gpu", "pods"):
            whole = sum(allocatable(node).get(name, 0) for node in cluster.nodes)
            used = len(mine) if name == "pods" else sum(one.requests.get(name, 0) for one in mine)
            found += [Fraction(used, whole)] if whole else []
        return max(found) / weight

    # --- where a pod goes --------------------------------------------------------------------------------------

    def refused(self, pod: ThePod, node: TheNode) -> bool:
        """Whether a node refuses the pod, with those for whom room is made beside it too."""
        coming = [
            one
            for one in pod.cluster.pods
            if one is not pod and not one.node and one["priority"] >= pod["priority"]
            if one.status.get("nominatedNodeName") == node.name
        ]
        if self._refuses(pod, node):
            return True
        for one in coming:
            one.reserved = node.name
        try:
            return bool(coming) and self._refuses(pod, node)
        finally:
            for one in coming:
                one.reserved = ""

    def _refuses(self, pod: ThePod, node: TheNode) -> bool:
        if self.fits and (node["unschedulable"] or not has_room(pod, node)):
            return True
        return self.naive.refusal(pod, node) is not None

    def feasible(self, pod: ThePod) -> list[TheNode]:
        if self.naive.whole(pod) is not None:
            return []
        return [node for node in pod.cluster.nodes if not self.refused(pod, node)]

    def best(self, pod: ThePod, feasible: list[TheNode]) -> list[str]:
        nominated = [node.name for node in feasible if node.name == pod.status.get("nominatedNodeName")]
        if nominated and len(feasible) > 1:
            return nominated
        scores = self.naive.scores(pod, feasible)
        total = [sum(points) for points in zip(*scores.values(), strict=True)] or [0] * len(feasible)
        return [node.name for node, points in zip(feasible, total, strict=True) if points == max(total)]

    def _decided(self, pod: ThePod, actions: list[Action]) -> Iterator[str]:
        name, uid = pod["name"], pod["uid"]
        feasible = self.feasible(pod)
        victims = [action.uid for action in actions if isinstance(action, DeleteVictim) and action.preemptor == uid]
        bound = [action for action in actions if isinstance(action, Bind) and action.uid == uid]
        got = self._node_now(uid)
        lines = [(one.point, one.message) for one in actions if isinstance(one, Log) and one.uid == uid]
        if not feasible:
            if got:
                yield f"{name} is given {got}, which refuses it"
            yield from self._victims(pod, victims)
            yield from self._said(pod, "", lines, ("preFilter", "postFilter") if pod.cluster.nodes else ())
            return
        if victims:
            yield f"{victims} have to go for {name}, which fits on {[node.name for node in feasible]}"
        chosen = got or next((node.name for node in feasible if len(feasible) == 1), "")
        best = self.best(pod, feasible)
        if got and got not in best:
            yield f"{name} is given {got}, the best are {best}"
        elif got:
            yield from self._kept(pod, got, feasible)
        if not chosen:
            held = [self._permitted(pod, node) for node in best]
            if "refused" not in held:
                yield f"{name} is refused, {best} take it: {self.refusal(uid)}"
            return
        held = self._permitted(pod, chosen)
        want = {"held": (True, False), "bound": (True, True), "refused": (False, False)}[held]
        if (bool(got), bool(bound)) != want:
            yield f"{name} on {chosen}: given a node, bound: {bool(got), bool(bound)}, the oracle {held}"
        yield from self._said(pod, chosen, lines, ("preFilter", "reserve"))
        for action in bound:
            yield from self._annotated(pod, action)

    def _kept(self, pod: ThePod, got: str, feasible: list[TheNode]) -> Iterator[str]:
        """What the scheduler keeps of the decision is what the oracle weighs."""
        kept = self.state.placement(pod["uid"])
        if kept is None or kept.choice.node != got or kept.at != self.now:
            yield f"{pod['name']} is given {got} at {self.now}, and {kept} is kept"
            return
        choice = kept.choice
        if choice.feasible != len(feasible) or choice.nodes != len(pod.cluster.nodes):
            yield f"{pod['name']}: {len(feasible)} nodes are feasible, and {choice} is kept"
        at = {node.name: place for place, node in enumerate(feasible)}
        scores = self.naive.scores(pod, feasible)
        wanted = {name: {rule: points[at[name]] for rule, points in scores.items()} for name in choice.best}
        if choice.weighted() != (wanted if choice.how == SCORED else {}):
            yield f"{pod['name']}: the oracle scores {wanted}, and {choice} is kept"

    def _permitted(self, pod: ThePod, name: str) -> str:
        """What becomes of a pod that was given a node: held, bound or refused."""
        pod.reserved = name
        node = next(one for one in pod.cluster.nodes if one.name == name)
        at, found = self.naive.place(pod, node), "bound"
        for rule in self.naive.policy.permits:
            if not self.naive.applies(rule.when, at, failed=True) or self.naive.value(rule.until, at) is True:
                continue
            delay = self.naive.seconds(rule.delay, at)
            if rule.delay is not None and delay is None:
                found = "refused"
                break
            if delay is None or delay >= FINEST:
                found = "held"
        pod.reserved = ""
        return found

    def _said(self, pod: ThePod, name: str, lines: list[tuple[str, str]], points: Sequence[str]) -> Iterator[str]:
        pod.reserved = ""
        for point in points:
            if name and point == "reserve":
                pod.reserved = name
            node = next((one for one in pod.cluster.nodes if one.name == name), None)
            at = self.naive.place(pod, node if point == "reserve" else None)
            rules = [rule for rule in self.naive.policy.logs if rule.point == point]
            want = [self.naive.text(r.message, at) for r in rules if self.naive.applies(r.when, at, failed=False)]
            got = [message for of, message in lines if of == point]
            if len(got) != len(want) or any(begins(one, line) != line for one, line in zip(got, want, strict=True)):
                yield f"{pod['name']}, on {point}: {got}, the oracle {want}"
        pod.reserved = ""

    def _annotated(self, pod: ThePod, action: Bind) -> Iterator[str]:
        pod.reserved = action.node
        node = next(one for one in pod.cluster.nodes if one.name == action.node)
        for rule in self.naive.policy.annotations:
            want = self.naive.text(rule.value, self.naive.place(pod, node))
            if begins(action.annotations.get(rule.key), want) != want:
                yield f"{pod['name']}: {rule.key} is {action.annotations.get(rule.key)!r}, the oracle {want!r}"
        pod.reserved = ""

    # --- who has to go -----------------------------------------------------------------------------------------

    def _victims(self, pod: ThePod, victims: list[str]) -> Iterator[str]:
        if not victims:
            return
        rule, naive, name = self.naive.policy.preempt, self.naive, pod["name"]
        there = {pod.cluster.pod(uid).node for uid in victims}
        at = naive.place(pod)
        applies = rule is not None and naive.applies(rule.when, at, failed=False)
        gone = [pod.cluster.pod(uid) for uid in victims]
        for victim in gone:
            place = naive.place(pod, victim=victim)
            if not naive.policy.quotas and victim["priority"] >= pod["priority"]:
                yield f"{victim['name']} has to go for {name}, which is not above it"
            narrowed = applies and rule is not None and rule.victims is not None
            if narrowed and not naive.applies(rule.victims, place, failed=False):
                yield f"{victim['name']} has to go for {name}, against `victims`"
        if self.naive.policy.gangs:
            return
        if len(there) != 1:
            yield f"{victims} have to go for {name} from {sorted(there)}"
        most = naive.value(rule.max_victims, at) if applies and rule is not None else FAILED
        if most is not FAILED and len(victims) > most:
            yield f"{len(victims)} have to go for {name}, no more than {most} may"
        node = next(one for one in pod.cluster.nodes if one.name in there)
        # Who is held at Permit is not deleted, but refused.
        gone += [one for one in pod.cluster.pods if one.reserved == node.name and not self._node_now(one["uid"])]
        standing = [(one, one.spec.get("nodeName"), one.reserved) for one in gone]
        for one in gone:
            one.spec, one.reserved = {**one.spec, "nodeName": ""}, ""
        if naive.over_quota(pod) is None and self.refused(pod, node):
            yield f"{victims} have to go for {name}, and it does not fit on {node.name} then"
        for one, bound, reserved in standing:
            one.spec, one.reserved = {**one.spec, "nodeName": bound}, reserved

    # --- gangs and Permit, later -------------------------------------------------------------------------------

    def _gang(self, popped: list[ThePod]) -> Iterator[str]:
        """Placed whole or not at all."""
        found = self.naive.gang(popped[0])
        if found is None:
            return
        rule, key = found
        mates = [one for one in popped[0].cluster.pods if self.naive.gang(one) == found]
        least = max(self._least(rule, one) for one in mates)
        placed = sum(bool(one.node or self._node_now(one["uid"])) for one in mates)
        fresh = [one["name"] for one in mates if not one.node and self._node_now(one["uid"])]
        if fresh and placed < min(least, len(mates)) and len(mates) >= least:
            yield f"gang {key}: {fresh} are placed, {placed} of {least}"

    def look_at_rest(self) -> None:
        """Nobody waits who could go."""
        cluster = self.now_there()
        for pod in cluster.pods:
            place = self.state.place(pod["uid"])
            given_up = "rejected due to timeout" in self.refusal(pod["uid"])
            if place == "unschedulable" and not given_up and not self.in_gang(pod) and self.feasible(pod):
                nodes = self.best(pod, self.feasible(pod))
                if all(self._permitted(pod, node) != "refused" for node in nodes):
                    self.wrong.append(f"{self.now - NOW:g} s: {pod['name']} waits and could go to {nodes}")


def allocatable(node: TheNode) -> dict[str, int]:
    pods = int(node.status.get("allocatable", {}).get("pods", 0))
    return {**node["allocatable"], "pods": pods}


def has_room(pod: ThePod, node: TheNode) -> bool:
    free, asked = node["free"], pod.requests
    if len(node.pods) + 1 > allocatable(node)["pods"]:
        return False
    return all(amount == 0 or amount <= free.get(name, 0) for name, amount in asked.items())
