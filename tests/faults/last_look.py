"""The auditor's look at what there is at the end: nobody waits who fits, and no gang is bound in part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

from tests.faults.facts import (
    RESOURCES,
    Json,
    allocatable_of,
    asks,
    ended,
    gang_of,
    key_of,
    least_of,
    node_of,
    nominated,
    refusal,
    told,
    uid_of,
)
from tests.faults.knowledge import Policy


class LastLook:
    """What is wrong with a cluster in which nothing moves any more; `object_to` is told of it."""

    def __init__(self, pods: dict[str, Json], nodes: dict[str, Json], object_to: Callable[[str, str], None]) -> None:
        self.pods = pods
        self.nodes = nodes
        self.object_to = object_to

    def take(self, cache: Mapping[str, Any] | None, serves: Mapping[str, Policy]) -> None:
        """`cache`, `serves`: as `Auditor.finish` is told."""
        if cache is not None:
            self._compare(cache)
            for uid in cache["held"]:
                self.object_to("I4", f"{uid} still holds room and is not bound")
        for uid, pod in self.pods.items():
            policy = serves.get(pod["spec"]["schedulerName"])
            if policy is not None and self._waits(pod):
                self._not_lost(uid, pod, policy)
        self._whole_gangs(serves)

    def _compare(self, cache: Mapping[str, Any]) -> None:
        pods = {uid: pod["spec"].get("nodeName", "") for uid, pod in self.pods.items() if not ended(pod)}
        nodes = {
            name: (int(allocatable_of(node, "cpu") * 1000), bool(node["spec"].get("unschedulable")))
            for name, node in self.nodes.items()
        }
        for what, real in (("pods", pods), ("nodes", nodes)):
            if cache[what] != real:
                self.object_to("I7", f"{what}: {sorted(set(cache[what].items()) ^ set(real.items()))}")

    @staticmethod
    def _waits(pod: Json) -> bool:
        meta, spec = pod["metadata"], pod["spec"]
        return not (spec.get("nodeName") or meta.get("deletionTimestamp") or ended(pod))

    def _not_lost(self, uid: str, pod: Json, policy: Policy) -> None:
        if not pod["spec"].get("schedulingGates") and not told(pod):
            self.object_to("I3", f"{key_of(pod)} waits and no reason is stated")
        if not gang_of(pod) and self._fits(pod, policy, {}):
            self.object_to("I3", f"{key_of(pod)} waits though it fits")

    def _fits(self, pod: Json, policy: Policy, beside: dict[str, str]) -> str:
        """A node with room for the pod, others standing `beside` (UID -> node, "" for gone); empty for none."""
        if pod["spec"].get("schedulingGates"):
            return ""
        for name, node in self.nodes.items():
            allowed = policy.nodes is None or name in policy.nodes
            if allowed and not refusal(pod, node) and self._has_room(pod, node, beside):
                return name
        return ""

    def _has_room(self, pod: Json, node: Json, beside: dict[str, str]) -> bool:
        name, mine = node["metadata"]["name"], pod["metadata"]["uid"]
        others = [
            other
            for uid, other in self.pods.items()
            if uid != mine
            and not ended(other)
            and beside.get(uid, other["spec"].get("nodeName") or nominated(other, pod)) == name
        ]
        return all(
            sum((asks(other, one) for other in (*others, pod)), Fraction(0)) <= allocatable_of(node, one)
            for one in RESOURCES
        )

    def _whole_gangs(self, serves: Mapping[str, Policy]) -> None:
        gangs: defaultdict[str, list[Json]] = defaultdict(list)
        for pod in self.pods.values():
            if gang_of(pod) and pod["spec"]["schedulerName"] in serves and not ended(pod):
                gangs[gang_of(pod)].append(pod)
        for gang, members in gangs.items():
            self._whole(gang, members, serves[members[0]["spec"]["schedulerName"]])
        in_part = [
            gang for gang, members in gangs.items() if 0 < sum(map(bool, map(node_of, members))) < least_of(members[0])
        ]
        for one, other in combinations(in_part, 2):
            pair = ((gangs[one], gangs[other]), (gangs[other], gangs[one]))
            if all(
                self._placeable(
                    members, serves[members[0]["spec"]["schedulerName"]], dict.fromkeys(map(uid_of, rest), "")
                )
                for members, rest in pair
            ):
                self.object_to("I4", f"{one} and {other} are bound in part, and each fits without the other")

    def _placeable(self, members: list[Json], policy: Policy, beside: dict[str, str]) -> int:
        """How many members find a node, if with those that are bound they are enough; else 0."""
        found, least = 0, least_of(members[0])
        for pod in members:
            if self._waits(pod) and (node := self._fits(pod, policy, beside)):
                beside[uid_of(pod)] = node
                found += 1
        return found if found + sum(bool(node_of(pod)) for pod in members) >= least else 0

    def _whole(self, gang: str, members: list[Json], policy: Policy) -> None:
        least, bound = least_of(members[0]), [pod for pod in members if node_of(pod)]
        placed = self._placeable(members, policy, {})
        if not placed:
            return
        if 0 < len(bound) < least:
            self.object_to("I4", f"{len(bound)} of the {least} members of {gang} are bound, and the others fit")
        else:
            self.object_to("I3", f"{placed} members of {gang} wait though they fit")
