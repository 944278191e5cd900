"""Watches a simulation from outside and objects where an invariant is broken. It imports nothing of the project: it
reads the objects' JSON as they come, and counts everything anew.

I1 no pod bound twice · I2 no binding raises a node over its allocatable · I3 no pod lost · I4 no gang in part ·
I6 one policy hash a decision · I7 the cache is what there is · I8 nothing piles up · I9 every hard rule held.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import msgspec

UNITS = {"m": Fraction(1, 1000), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "": Fraction(1)}
ENFORCED = ("NoSchedule", "NoExecute")
INSTANT = 1e-3
"""Seconds that are lost where moments are counted from 1970."""
MOST_TRIES = 20
"""Attempts that a pod may have at one moment."""
PLACES = {
    "gated",
    "held",
    "active",
    "backoff",
    "unschedulable",
    "in flight",
    "waiting at permit",
}


def amount(text: Any) -> Fraction:
    """A quantity of those that the tests write."""
    text = str(text)
    digits = text.rstrip("mMGi")
    return Fraction(digits) * UNITS[text[len(digits) :]]


class Auditor:
    """`watch` is what a simulation tells; the rest is asked after each moment, and at the end."""

    def __init__(self, limits: dict[str, dict[str, int]] | None = None, delays: dict[str, float] | None = None) -> None:
        """`limits`: namespace -> resource -> what its pods may use together. `delays`: value of label `hold` -> seconds
        between decision and binding, at least."""
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.where: dict[str, str] = {}
        """UID -> node, of the pods that are there and bound."""
        self.ever_bound: set[str] = set()
        self.tried: dict[str, tuple[float, str]] = {}
        """UID -> (when, hash) of the last attempt."""
        self.placed_of: dict[str, int] = {}
        """Gang -> how many of its members were bound at some time."""
        self.bindings = 0
        self._tries: Counter[str] = Counter()
        """UID -> attempts at this moment."""
        self._limits = limits or {}
        self._delays = delays or {}

    def watch(self, at: float, what: str, details: Any) -> None:
        match what:
            case "node":
                self.nodes[details["metadata"]["name"]] = details
            case "node gone":
                del self.nodes[details["name"]]
            case "pod":
                pod = msgspec.to_builtins(details["pod"])
                assert pod["metadata"]["uid"] not in self.pods, "a UID came twice"
                self.pods[pod["metadata"]["uid"]] = pod
            case "attempted":
                assert details["uid"] not in self.where, "I1: a bound pod was tried"
                self.tried[details["uid"]] = (at, details["hash"])
                self._tries[details["uid"]] += 1
                assert self._tries[details["uid"]] <= MOST_TRIES, f"I8: {details['uid']} is tried without end"
            case "bound":
                self._bound(at, details["uid"], details["node"], details["hash"])
            case "ended":
                self.pods.pop(details["uid"])
                self.where.pop(details["uid"], None)
            case "moment over":
                self._tries.clear()
                self._whole_gangs(at)

    # --- at a binding ---------------------------------------------------------------------------------

    def _bound(self, at: float, uid: str, node: str, policy_hash: str) -> None:
        assert uid not in self.ever_bound, f"I1: {uid} was bound twice"
        self.ever_bound.add(uid)
        self.bindings += 1
        pod = self.pods[uid]
        when, tried_by = self.tried[uid]
        assert policy_hash == tried_by, f"I6: {uid} was tried by {tried_by} and bound by {policy_hash}"
        hold = pod["metadata"].get("labels", {}).get("hold")
        assert at - when >= self._delays.get(hold, 0.0) - INSTANT, (
            f"I9: {uid} was bound {at - when} s after its decision"
        )
        if not self._delays:  # a held pod was decided on earlier, by rules that held then
            self._hard_rules(pod, self.nodes[node])
        self.where[uid] = node
        self._room(node)
        self._quota(pod["metadata"]["namespace"])
        gang = self._gang(pod)
        if gang:
            self.placed_of[gang] = self.placed_of.get(gang, 0) + 1

    def _hard_rules(self, pod: dict[str, Any], node: dict[str, Any]) -> None:
        refusal = self.refusal(pod, node)
        assert not refusal, f"I9: {pod['metadata']['name']} is on {node['metadata']['name']}: {refusal}"

    def refusal(self, pod: dict[str, Any], node: dict[str, Any]) -> str:
        """Why a pod must not be put on a node, but for room."""
        spec, labels = pod["spec"], node["metadata"]["labels"]
        tolerations = spec.get("tolerations", [])
        if node["spec"]["unschedulable"]:
            return "it is cordoned"
        for taint in node["spec"]["taints"]:
            if taint["effect"] in ENFORCED and not any(one["key"] == taint["key"] for one in tolerations):
                return f"taint {taint['key']}"
        wanted = spec.get("nodeSelector", {})
        return "" if all(labels.get(key) == value for key, value in wanted.items()) else "selector"

    def used(self, node: str, resource: str) -> Fraction:
        return sum((self.asks(self.pods[uid], resource) for uid, on in self.where.items() if on == node), Fraction(0))

    def asks(self, pod: dict[str, Any], resource: str) -> Fraction:
        if resource == "pods":
            return Fraction(1)
        return sum(
            (amount(one["resources"]["requests"].get(resource, 0)) for one in pod["spec"]["containers"]), Fraction(0)
        )

    def free(self, node: str, resource: str) -> Fraction:
        return amount(self.nodes[node]["status"]["allocatable"][resource]) - self.used(node, resource)

    def _room(self, node: str) -> None:
        for resource in ("cpu", "memory", "pods"):
            assert self.free(node, resource) >= 0, f"I2: {node} is over its {resource}"

    def _quota(self, namespace: str) -> None:
        for resource, most in self._limits.get(namespace, {}).items():
            used = self.namespace_uses(namespace, resource)
            assert used <= most, f"I9: {namespace} uses {used} {resource} of {most}"

    def namespace_uses(self, namespace: str, resource: str) -> Fraction:
        of = (self.pods[uid] for uid in self.where)
        return sum((self.asks(pod, resource) for pod in of if pod["metadata"]["namespace"] == namespace), Fraction(0))

    # --- after a moment -------------------------------------------------------------------------------

    def _gang(self, pod: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {})
        return f"{pod['metadata']['namespace']}/{labels['podGroup']}" if "podGroup" in labels else ""

    def _whole_gangs(self, at: float) -> None:
        """The scheduler binds all of a gang at one moment; later members end, which is nobody's fault."""
        for pod in self.pods.values():
            gang = self._gang(pod)
            if gang:
                bound, least = self.placed_of.get(gang, 0), int(pod["metadata"].get("labels", {})["minAvailable"])
                assert bound == 0 or bound >= least, f"I4: at {at} s {bound} of {least} of {gang} are bound"

    def compare(self, cache: dict[str, str], nodes: set[str]) -> None:
        """`cache`: UID -> node of the bound pods as the scheduler has them, "" for others; `nodes`: its nodes."""
        real = {uid: self.where.get(uid, "") for uid in self.pods}
        assert cache == real, f"I7: the cache differs in {sorted(set(cache.items()) ^ set(real.items()))}"
        assert nodes == set(self.nodes), "I7: the cache has other nodes"

    def look_at_waiting(self, places: dict[str, str], told: dict[str, str]) -> None:
        """`places`: UID -> where the scheduler says a waiting pod is; `told`: what it said of why."""
        for uid in self.pods.keys() - self.where.keys():
            assert places[uid] in PLACES, f"I3: {uid} is {places[uid]}"
            waits = places[uid] not in ("active", "in flight", "waiting at permit")
            assert not waits or told[uid], f"I3: {uid} is {places[uid]}, and nothing was said of why"

    def forgotten(self) -> list[str]:
        """WaitingPod pods of no gang that a node has room for, and that no quota keeps out."""
        return [uid for uid in self.pods.keys() - self.where.keys() if self._could_run(self.pods[uid])]

    def _could_run(self, pod: dict[str, Any]) -> bool:
        if self._gang(pod) or "schedulingGates" in pod["spec"]:
            return False
        namespace = pod["metadata"]["namespace"]
        for resource, most in self._limits.get(namespace, {}).items():
            if self.namespace_uses(namespace, resource) + self.asks(pod, resource) > most:
                return False
        return any(self._fits(pod, name) for name in self.nodes)

    def _fits(self, pod: dict[str, Any], name: str) -> bool:
        room = all(self.free(name, one) >= self.asks(pod, one) for one in ("cpu", "memory", "pods"))
        return room and not self.refusal(pod, self.nodes[name])
