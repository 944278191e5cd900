"""Plays a scenario: one moment after the other, on the virtual time of a `Trial`.

Rules:
1. The scheduler is the one that runs in a cluster; what stands in for the rest is small and stated: pods run as soon as
   they are bound, finish after their time, go at once when they are deleted, and come again a second later where their
   template says so.
2. Everything random is drawn from the seed, for each template by itself: a template more changes no other's draws.
3. At one moment, what the scheduler had to do comes first, then what the scenario brings, in the order planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_objects import Pod, PodCondition
from policyengine.cluster.pod_shape import shape_of
from policyengine.framework.profile import Profile
from policyengine.scheduler.messages import NodeDeleted, NodeObserved, ObjectObserved, PodDeleted, PodObserved
from policyengine.scheduler.pod_timeline import TimelineEntry
from policyengine.trials.ledger import Ledger
from policyengine.trials.scenario import Json, Scenario, ScenarioError, Template
from policyengine.trials.templates import PodMaker, SimulatedPod, decoded, group_of, moments, node_json, uid
from policyengine.trials.trial import Driven, Trial, bare

RECREATED_AFTER = 1.0
"""Seconds after which a controller has made a pod again."""
QUIET = 600.0
"""Seconds after which a scenario without a duration ends, once nothing is planned any more."""
MOST_PODS = 1_000_000
MOST_MESSAGES = 20_000_000
"""Bounds of the work."""
DISRUPTED: Final = {"drained": "EvictionByEvictionAPI", "lost": "DeletionByTaintManager"}
"""How a pod ends that others make go -> the reason of its condition DisruptionTarget."""

Watch = Callable[[float, str, Mapping[str, Any]], None]
"""Told (seconds from the start, what, details) of all that happens, in order; `what` is `node`, `node gone`, `pod`,
`attempted`, `bound`, `ended` or `moment over`."""


class Play:
    """One run. `trial` and `ledger` are to read from."""

    def __init__(
        self,
        scenario: Scenario,
        profiles: Sequence[Profile],
        seed: int,
        watch: Watch | None = None,
        driven: Driven = bare,
    ) -> None:
        self.scenario = scenario
        self.trial = Trial(profiles, scenario.start, limit=MOST_MESSAGES, driven=driven)
        self.ledger = Ledger()
        self.pods: dict[str, SimulatedPod] = {}
        """UID -> pod, of those that are there."""
        self.node_items: dict[str, Json] = {}
        """Name -> JSON, of the nodes that are there."""
        self.failures: dict[str, tuple[float, float]] = {}
        """Name -> from when until when, of the nodes that nobody reaches."""
        self._watch: Watch = watch or (lambda at, what, details: None)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._uids: Iterator[int] = count(1)
        self._over = False
        self._started = False
        self.at = 0.0
        """Seconds from the start."""
        self._last_planned = 0.0
        self._prepare(profiles[0].scheduler_name, seed)

    def _prepare(self, scheduler_name: str, seed: int) -> None:
        for nodes in self.scenario.nodes:
            self._go_on(self._nodes_come(nodes, seed), False)
        for pods in self.scenario.pods:
            self._go_on(self._pods_come(pods, scheduler_name, seed), True)

    def _go_on(self, arrivals: Iterator[float], together: bool) -> None:
        """Have the next of a template's things come in its time. `together`: those of this very moment come right away,
        before those of other templates."""
        for at in arrivals:
            if not together or at > self.at or not self._started:
                self.plan(at, partial(self._go_on, arrivals, together))
                return

    # --- time -----------------------------------------------------------------------------------------

    def plan(self, at: float, what: Callable[[], None]) -> None:
        """Have something happen at a time, in seconds from the start, which is not past."""
        heappush(self._agenda, (max(at, self.at), next(self._numbers), what))

    def step(self) -> bool:
        """Play one moment; whether there was one left.

        Raises:
            ScenarioError: the scenario says something that cannot be.
            TrialTooLong: the work has no end.
        """
        if self._over:
            return False
        self._started = True
        due, self._over = self._due()
        self.at = due
        self.trial.advance_to(due + self.scenario.start)
        self._notice()
        while self._agenda and self._agenda[0][0] <= due:
            heappop(self._agenda)[2]()
        self._settle()
        self.ledger.moment_over(due)
        self._watch(due, "moment over", {})
        return True

    def play_to(self, at: float) -> None:
        """Play every moment up to `at`, in seconds from the start. Raises as `step`."""
        while not self._over and self._due()[0] <= at:
            self.step()

    def _due(self) -> tuple[float, bool]:
        """The next moment, and whether it is the last."""
        duration = self.scenario.duration
        planned = self._agenda[0][0] if self._agenda else None
        wakeup = self.trial.next_due()
        if wakeup is not None:
            wakeup -= self.scenario.start
        end = duration if duration is not None else self._quiet_end(planned)
        due = min(time for time in (planned, wakeup, end) if time is not None)
        return due, end is not None and due >= end

    def _quiet_end(self, planned: float | None) -> float | None:
        """When a scenario without a duration ends; None while something is planned."""
        if planned is not None:
            self._last_planned = planned
            return None
        return max(self.at, self._last_planned + (QUIET if self.ledger.pending else 0.0))

    def _settle(self) -> None:
        """Let the scheduler act until nothing moves, and the kubelet follow."""
        self.trial.settle()
        while self._notice():
            self.trial.settle()

    # --- nodes ----------------------------------------------------------------------------------------

    def _nodes_come(self, template: Template, seed: int) -> Iterator[float]:
        """When each node of a template comes; it has come once the next time is asked for."""
        random = Random(f"{seed}/node/{template.name}")
        for number, at in enumerate(moments(template.arrival, random)):
            yield at
            item = node_json(template, number, self.trial.now)
            self.show_node(item, template.place)
            if template.lasts is not None:
                self.plan(self.at + template.lasts(random), partial(self.remove_node, item["metadata"]["name"]))

    def show_node(self, item: Json, place: tuple[str | int, ...]) -> None:
        """A node is there, or has changed, to what the JSON says."""
        node = decoded(Node, item, place)
        self.node_items[node.metadata.name] = item
        try:
            self.ledger.node_seen(node, self.at)
        except ValueError as error:
            raise ScenarioError(f"node `{node.metadata.name}`: {error}", place) from None
        self._watch(self.at, "node", item)
        self.trial.see(NodeObserved(node))

    def remove_node(self, name: str) -> None:
        """A node goes, if it is there, with its pods."""
        if self.node_items.pop(name, None) is None:
            return
        self.end_pods_on(name, "lost")
        self.ledger.node_gone(name, self.at)
        self._watch(self.at, "node gone", {"name": name})
        self.trial.see(NodeDeleted(name))

    # --- pods -----------------------------------------------------------------------------------------

    def _pods_come(self, template: Template, scheduler_name: str, seed: int) -> Iterator[float]:
        """The same of a template's pods."""
        maker = PodMaker(template, scheduler_name, Random(f"{seed}/pod/{template.name}"))
        for number, at in enumerate(moments(template.arrival, Random(f"{seed}/arrival/{template.name}"))):
            yield at
            made = maker.arrival(number, self._uids, self.trial.now)
            group = group_of(made[0])
            if group is not None:
                self.trial.see(ObjectObserved("PodGroup", group))
            for pod in made:
                self._pod_comes(pod)

    def _pod_comes(self, pod: SimulatedPod) -> None:
        if len(self.ledger.pods) >= MOST_PODS:
            raise ScenarioError(f"more than {MOST_PODS:,} pods come", pod.template.place)
        template = pod.template
        shown = pod.pod
        self.pods[shown.metadata.uid] = pod
        minimum = template.gang.minimum if template.gang else 0
        shape = shape_of(shown.spec, shown.status)  # kept until the scheduler's view has it, which shares it then
        self.ledger.created(shown, shape, template.name, self.at, pod.gang, minimum)
        self._watch(self.at, "pod", {"pod": shown})
        self.trial.see(PodObserved(shown))
        node = shown.spec.node_name
        if node and node not in self.node_items:
            raise ScenarioError(f"no node is called `{node}` when the pod comes", template.place)
        if node:
            self._bound(shown.metadata.uid, {"node": node, "policy hash": ""})

    def _come_again(self, pod: SimulatedPod) -> None:
        self._pod_comes(pod.once_more(uid(next(self._uids)), self.trial.now))

    def change_pod(self, uid_: str, change: Callable[[Pod], Pod]) -> None:
        """Somebody edits a pod."""
        self.trial.see(PodObserved(change(self.trial.cluster.pods[uid_])))

    def end_pods_on(self, node: str, how: str) -> None:
        """Every pod on a node goes."""
        for uid_ in [uid_ for uid_ in self.pods if self.ledger.pods[uid_].node == node]:
            self.end_pod(uid_, how)

    def end_pod(self, uid_: str, how: str) -> None:
        """A pod finishes, or is deleted; nothing where it is gone already."""
        if uid_ not in self.pods:
            return
        pod = self.trial.cluster.pods[uid_]
        if how == "finished":
            self.trial.see(PodObserved(replace(pod, status=replace(pod.status, phase="Succeeded"))))
        elif pod.spec.node_name:
            metadata, status = replace(pod.metadata, deletion_timestamp=format_time(self.trial.now)), pod.status
            if how in DISRUPTED:
                why = PodCondition("DisruptionTarget", "True", DISRUPTED[how])
                status = replace(status, conditions=(*status.conditions, why))
            self.trial.see(PodObserved(replace(pod, metadata=metadata, status=status)))
        self._ended(uid_, how)
        self.trial.see(PodDeleted(pod.metadata.namespace, pod.metadata.name, uid_))

    def _ended(self, uid_: str, how: str) -> None:
        pod = self.pods.pop(uid_)
        self.ledger.ended(uid_, how, self.at)
        self._watch(self.at, "ended", {"uid": uid_, "how": how})
        if pod.template.given.get("recreate") and how != "finished":
            self.plan(self.at + RECREATED_AFTER, partial(self._come_again, pod))

    # --- what the scheduler did -----------------------------------------------------------------------

    def _notice(self) -> bool:
        """Take down what was told since the last time, and let bound pods run; whether any was bound."""
        trial = self.trial
        lines, trial.history[:] = list(trial.history), []
        trial.binds.clear()
        trial.events.clear()
        trial.popped.clear()
        started = [uid_ for uid_, line in lines if self._take_down(uid_, line)]
        for uid_ in started:
            pod = trial.cluster.pods.get(uid_)
            if pod is not None:
                status = replace(pod.status, phase="Running", start_time=format_time(trial.now))
                trial.see(PodObserved(replace(pod, status=status)))
        return bool(started)

    def _take_down(self, uid_: str, line: TimelineEntry) -> bool:
        """One entry of a pod's timeline; whether it was bound."""
        record, details = self.ledger.pods[uid_], line.details
        match line.what:
            case "attempted":
                record.attempts += 1
                self._watch(self.at, "attempted", {"uid": uid_, "hash": details["policy hash"]})
            case "refused":
                record.refused_by, record.told = tuple(sorted(details["by"])), details["message"]
            case "held" | "failed" | "gated":
                record.told = details["message"]
            case "preempted":
                self._ended(uid_, "preempted")
            case "bound":
                self._bound(uid_, details)
                return True
        return False

    def _bound(self, uid_: str, details: Mapping[str, Any]) -> None:
        self.ledger.bound(uid_, details["node"], self.at)
        self._watch(self.at, "bound", {"uid": uid_, "node": details["node"], "hash": details["policy hash"]})
        runs = self.pods[uid_].runs
        if runs is not None:
            self.plan(self.at + runs, partial(self.end_pod, uid_, "finished"))
