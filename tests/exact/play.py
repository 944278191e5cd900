"""A world played: kube-scheduler decides about pods one at a time, we about the same pods in the same cluster.

What it decides stands, for both. Of nodes, and of nodes to clear, that are equally good it takes any: then ours need
only be among these. Everything else is to be the same to the letter: who fits nowhere and the words of why, who is
preempted, conditions, events.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.exact.least_harm import least_harm
from tests.exact.ours import Decision, Ours
from tests.exact.random_world import collection, started, world
from tests.exact.real import MERGE, PATIENCE, SCHEDULER, Real, condition
from tests.exact.score_log import ScoreLog
from tests.exact.volume_binder import bind_volumes
from tests.exact.wording import event, name_of, our_condition, our_event, said

Json = dict[str, Any]
_REASON = re.compile(r"(?:^|, )(?:\d+ )?([^,]+?)\.?(?=,|$)")


@dataclass
class Comparison:
    """What came of a world."""

    seed: int
    themes: list[str]
    differences: list[str] = field(default_factory=list)
    bound: int = 0
    chosen_among: int = 0
    """Bindings for which one node alone was the best of several that fit."""
    scores: int = 0
    """Of one plugin for one node."""
    refused: int = 0
    preempted: int = 0
    gated: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Why nodes were refused, in kube-scheduler's words, where no node fitted."""

    def differ(self, pod: Json, what: str, ours: object, theirs: object) -> None:
        self.differences.append(f"{pod['metadata']['name']}: {what}\n  ours   {ours}\n  theirs {theirs}")


async def play(real: Real, seed: int) -> Comparison:
    """A server without a world gets this one; what is left of it stays."""
    made = world(seed)
    comparison = Comparison(seed, sorted(made.themes))
    rng = Random(f"{seed} running")
    for obj in made.objects:
        await real.make(obj)
    ours = Ours(await real.everything(), time.time())
    async with real.scheduler() as scores:
        for coming in made.coming:
            await _Turn(real, ours, scores, comparison, rng).play(coming)
            if comparison.differences:
                break
    return comparison


@dataclass
class _Turn:
    """One pod."""

    real: Real
    ours: Ours
    scores: ScoreLog
    comparison: Comparison
    rng: Random
    standing: set[str] = field(default_factory=set)
    """UIDs of the pods that were there before."""

    async def play(self, coming: Json) -> None:
        self.standing = self.real.pods.keys() - self.real.gone
        pod = await self.real.ask(
            "POST", collection(coming), coming | {"spec": coming["spec"] | {"schedulerName": SCHEDULER}}
        )
        if coming["spec"].get("schedulingGates"):
            pod = await self._gated(pod)
        decision = self.ours.decide(pod)
        uid = pod["metadata"]["uid"]
        await self._until_decided(uid, lambda: self._is_decided(uid))
        now = self.real.pods[uid]
        if not self._was_refused(uid):
            await self._bound(decision, now)
        elif decision.node:
            self.comparison.differ(pod, "it refuses, we place", decision.node, self.real.conditions[uid]["message"])
        else:
            await self._refused(decision, now)

    def _was_refused(self, uid: str) -> bool:
        """Whether its first answer was no, be it that it preempted others and came again by now."""
        return any(one["reason"] == "FailedScheduling" for one in self.real.events.get(uid, ()))

    def _is_decided(self, uid: str) -> bool:
        """Whether all that is said of the decision has been said."""
        pod, told = self.real.pods.get(uid, {}), {one["reason"] for one in self.real.events.get(uid, ())}
        if not pod:
            return False
        if pod["spec"].get("nodeName"):
            return "Scheduled" in told
        said = self.real.conditions.get(uid, {}).get("reason")
        return "FailedScheduling" in told and said in ("Unschedulable", "SchedulerError")

    async def _gated(self, pod: Json) -> Json:
        """Neither of the two touches it; then its gates are taken away."""
        self.comparison.gated += 1
        decision = self.ours.decide(pod)
        if decision.node or decision.events:
            self.comparison.differ(pod, "a gated pod", (decision.node, decision.events), "is left alone")
        path = f"{collection(pod)}/{pod['metadata']['name']}"
        seen = await self.real.ask("GET", path)
        told = condition(seen, "PodScheduled")
        if (told.get("status"), told.get("reason")) != ("False", "SchedulingGated") or seen["spec"].get("nodeName"):
            self.comparison.differ(pod, "a gated pod", "waits", told)
        return await self.real.ask("PATCH", path, {"spec": {"schedulingGates": None}}, MERGE)

    async def _bound(self, decision: Decision, pod: Json) -> None:
        comparison, node = self.comparison, pod["spec"]["nodeName"]
        comparison.bound += 1
        best = decision.best
        comparison.chosen_among += len(best) == 1 < len(decision.explained["total"])
        if node not in best:
            comparison.differ(pod, "the node", _points(decision, {*best, node}), node)
        if decision.node not in best:
            comparison.differ(pod, "the core and explain", decision.node, best)
        self._compare_scores(decision, pod)
        ours = [our_event(one) for one in self.ours.bound(decision, pod)]
        theirs = [event(one) for one in self.real.events[pod["metadata"]["uid"]] if one["reason"] == "Scheduled"]
        if decision.node == node and ours != theirs and not decision.patches:
            comparison.differ(pod, "the event", ours, theirs)
        await self._runs(pod, decision)

    def _compare_scores(self, decision: Decision, pod: Json) -> None:
        """Of every plugin on every node. One that we skip gave 0 to all."""
        theirs, ours = self.scores.take(name_of(pod)), decision.explained["scores"]
        self.comparison.scores += sum(map(len, theirs.values()))
        if theirs and theirs.keys() != ours.keys():
            self.comparison.differ(pod, "the nodes that fit", sorted(ours), sorted(theirs))
            return
        for node, plugins in theirs.items():
            for plugin, score in plugins.items():
                if ours[node].get(plugin, 0) != score:
                    self.comparison.differ(pod, f"{plugin} of {node}", ours[node].get(plugin, 0), score)

    async def _refused(self, decision: Decision, pod: Json) -> None:
        self.comparison.refused += 1
        uid = pod["metadata"]["uid"]
        first = next(one for one in self.real.events[uid] if one["reason"] == "FailedScheduling")
        self.comparison.reasons.update(_REASON.findall(first["note"].partition("available: ")[2].partition(". ")[0]))
        ours = [our_event(one) for one in decision.events]
        if ours != [event(first)]:
            self.comparison.differ(pod, "the event", ours, event(first))
        self._compare_conditions(decision, pod)
        if decision.victims or self._victims or pod["spec"].get("nodeName"):
            await self._preempted(decision, pod)
            return
        await self.real.remove(pod)
        self.ours.forget(pod)

    def _compare_conditions(self, decision: Decision, pod: Json) -> None:
        theirs = said(self.real.conditions.get(pod["metadata"]["uid"], {}))
        ours = [our_condition(one) for one in decision.conditions]
        if ours != [theirs]:
            self.comparison.differ(pod, "the condition", ours, theirs)

    async def _preempted(self, decision: Decision, pod: Json) -> None:
        """Somebody has to go; then the pod comes anew."""
        self.comparison.preempted += 1
        uid = pod["metadata"]["uid"]
        await self._until_decided(uid, lambda: bool(self.real.pods[uid]["spec"].get("nodeName")))
        victims = self._victims
        assert await self.real.until(lambda: all(map(self._is_told, victims)))
        candidates = decision.explained.get("preemption", {}).get("candidates", {})
        node = next((victim["spec"]["nodeName"] for victim in victims.values()), "")
        allowed = least_harm(candidates, self.real.pods.values())
        going = {name_of(victim) for victim in victims.values()}
        if node not in allowed or going != set(candidates[node]["victims"]):
            self.comparison.differ(pod, "preemption", {name: candidates[name] for name in allowed}, (node, going))
            return
        self._compare_victims(decision, pod, victims, allowed, node)
        for victim in victims.values():
            self.ours.forget(victim)
        await self._comes_again(self.real.pods[uid], node)

    def _compare_victims(
        self, decision: Decision, pod: Json, victims: dict[str, Json], allowed: set[str], node: str
    ) -> None:
        """What is said of them, and of the pod that is to come in their place."""
        chosen = {one.uid for one in decision.victims}
        if not chosen or self.real.pods[next(iter(chosen))]["spec"]["nodeName"] not in allowed:
            self.comparison.differ(pod, "the core's victims", chosen, allowed)
            return
        events = self.ours.evicted(decision)
        if chosen != set(victims):
            return
        if decision.conditions[-1].nominated_node_name != node:
            self.comparison.differ(pod, "the nominated node", decision.conditions, node)
        for one, asked in zip(decision.victims, events, strict=True):
            theirs = [event(found) for found in self.real.events[one.uid] if found["reason"] == "Preempted"]
            if [our_event(asked)] != theirs:
                self.comparison.differ(pod, "the victim's event", our_event(asked), theirs)
            told = said(condition(victims[one.uid], "DisruptionTarget"))
            expected = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": one.message,
                "observedGeneration": one.observed_generation,
            }
            if told != expected:
                self.comparison.differ(pod, "the victim's condition", expected, told)

    async def _comes_again(self, pod: Json, node: str) -> None:
        """It is nominated to the node that was cleared, and goes elsewhere only where it does not fit there."""
        before = pod | {"spec": {name: value for name, value in pod["spec"].items() if name != "nodeName"}}
        before["status"] = {"phase": "Pending", "nominatedNodeName": node}
        again = self.ours.decide(before)
        feasible, place = again.explained["total"], pod["spec"]["nodeName"]
        if place not in ({node} if node in feasible else again.best) or again.node not in feasible:
            self.comparison.differ(pod, "where it comes once room is made", (again.node, feasible), place)
        self.ours.bound(again, pod)
        await self._runs(pod, again)

    async def _runs(self, pod: Json, decision: Decision) -> None:
        """It has begun; and what was written before it was bound is seen."""
        path = f"{collection(pod)}/{pod['metadata']['name']}/status"
        self.ours.observe(await self.real.ask("PATCH", path, {"status": started(self.rng)}, MERGE))
        if decision.patches:
            self.ours.see(await self.real.everything())

    async def _until_decided(self, uid: str, holds: Callable[[], bool]) -> None:
        """Wait, and bind volumes meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while not await self.real.until(holds, 0.2):
            if self.real.pods.get(uid, {}).get("spec", {}).get("volumes"):
                await bind_volumes(self.real.ask)
            assert time.monotonic() < deadline, (
                f"{self.comparison}: kube-scheduler does not decide: {self.real.pods.get(uid)}"
            )

    @property
    def _victims(self) -> dict[str, Json]:
        """Who had to go in this turn, by UID."""
        gone = self.real.gone & self.standing
        return {one: self.real.pods[one] for one in gone if condition(self.real.pods[one], "DisruptionTarget")}

    def _is_told(self, victim: str) -> bool:
        return any(one["reason"] == "Preempted" for one in self.real.events.get(victim, ()))


def _points(decision: Decision, nodes: set[str]) -> Json:
    return {
        node: decision.explained["scores"].get(node, decision.explained["rejected"].get(node)) for node in sorted(nodes)
    }
