"""What happened, played again under a policy: on virtual time, by the engine of `policyengine simulate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import inf
from typing import Final

import msgspec

from policyengine.cluster.pod_objects import Pod
from policyengine.framework.profile import Profile
from policyengine.plan.history import History, PastPod, is_emptied
from policyengine.plan.membership import NOBODY, Member, Memberships, Watching
from policyengine.plugins.selectors.tolerations import NO_EXECUTE
from policyengine.plugins.topology.spread_constraint import ZONE
from policyengine.scheduler.messages import Message, NodeDeleted, NodeObserved
from policyengine.trials.ledger import Ledger, mean_room
from policyengine.trials.play import Play, Watch
from policyengine.trials.scenario import Arrival, Scenario, Template
from policyengine.trials.templates import SimulatedPod, uid
from policyengine.trials.trial import Driven, bare

_ONCE: Final = Arrival(0.0, None, 1, inf)


class NotServed(ValueError):
    """A policy is for a scheduler name that nobody serves; the message says which there are."""


def replaced(old: Sequence[Profile], new: Sequence[Profile]) -> list[Profile]:
    """The old profiles, in their order, each new one in the place of the one of its name. Raises `NotServed`."""
    names = {profile.scheduler_name for profile in old}
    for one in new:
        if one.scheduler_name not in names:
            raise NotServed(
                f"policy `{one.name}` serves scheduler `{one.scheduler_name}`, which nobody serves today; there are "
                f"{', '.join(sorted(names)) or 'none'}"
            )
    by_name: Mapping[str, Profile] = {profile.scheduler_name: profile for profile in new}
    return [by_name.get(profile.scheduler_name, profile) for profile in old]


@dataclass(frozen=True, slots=True)
class Rerun:
    """One run: everything that is known of it, and how long it was, in seconds."""

    ledger: Ledger
    end: float
    left_out: int = 0
    """Pods that stood on a node that was never seen."""
    members: Mapping[str, Member] = field(default_factory=dict)
    """What pods count in, by UID."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """Node -> its zone, of the nodes there are in the end."""
    room: Mapping[str, float] = field(default_factory=dict)
    """What there is of each resource, in the mean over time."""

    def member(self, uid_: str) -> Member:
        """What a pod counts in."""
        return self.members.get(uid_, NOBODY)


def rerun(
    history: History,
    profiles: Sequence[Profile],
    progress: Callable[[float], None] = lambda share: None,
    memberships: Memberships | None = None,
) -> Rerun:
    """Play the history. `profiles`: one at least, of one scheduler name each; `memberships`: by which its pods are
    counted, those of the profiles unless given.

    Raises `ScenarioError` where the work has no end.
    """
    watching = Watching(memberships or Memberships((), profiles))
    play = watching.play = PastPlay(history, alone(history), profiles, 0, watching)
    length = max(history.end - history.start, 1e-9)
    while play.step():
        progress(min(1.0, play.at / length))
    return finished(play, watching, play.left_out)


def finished(play: Play, watching: Watching, left_out: int = 0) -> Rerun:
    """What is known of a play that is over."""
    watching.finish()
    nodes = play.trial.cluster.nodes
    zones = {name: zone for name, node in nodes.items() if (zone := node.metadata.labels.get(ZONE))}
    return Rerun(play.ledger, play.at, left_out, watching.members, zones, mean_room(play.ledger.samples, play.at))


def alone(history: History) -> Scenario:
    """The scenario of a history beside which nothing comes."""
    return Scenario("", history.start, 0, history.end - history.start, (), ())


class PastPlay(Play):
    """A play on whose agenda stands a history, beside what its scenario brings."""

    def __init__(
        self,
        history: History,
        scenario: Scenario,
        profiles: Sequence[Profile],
        seed: int,
        watch: Watch | None = None,
        driven: Driven = bare,
    ) -> None:
        """Times of the scenario count from where the history starts; of one moment, the history's things come first."""
        self._history = history
        self._served = {profile.scheduler_name for profile in profiles}
        self._living: dict[str, str] = {}
        """A pod's UID in the history -> the one it has now: that of the pod made in its place."""
        self._gone: set[str] = set()
        self.left_out = 0
        super().__init__(replace(scenario, start=history.start), profiles, seed, watch, driven)

    def _prepare(self, scheduler_name: str, seed: int) -> None:
        history = self._history
        known = {past.pod.metadata.uid for past in history.pods}
        self._uids = (number for number in count(1) if uid(number) not in known)
        for at, message in history.changes:
            self._at(at, partial(self._change, message))
        for at, node in history.emptied:
            self._at(at, partial(self._empty, node))
        for past in history.pods:
            self._plan_pod(past)
        super()._prepare(scheduler_name, seed)

    def _at(self, at: float, what: Callable[[], None]) -> None:
        self.plan(max(0.0, at - self.scenario.start), what)

    def _plan_pod(self, past: PastPod) -> None:
        pod = past.pod
        if pod.spec.scheduler_name not in self._served and not pod.spec.node_name:
            # Somebody else's: it comes where it was put, when it was put there.
            if past.bound is None:
                return
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=past.node))
            self._at(past.bound, partial(self._past_pod, past, pod))
        else:
            self._at(past.came, partial(self._past_pod, past, pod))
        for at, edited in past.edits:
            self._at(at, partial(self._edit, pod.metadata.uid, edited))
        if past.deleted is not None and past.finished is None:
            self._at(past.deleted, partial(self._leave, pod.metadata.uid))

    def _change(self, message: Message) -> None:
        if isinstance(message, NodeObserved):
            self.show_node(msgspec.to_builtins(message.node), ())
        elif isinstance(message, NodeDeleted):
            self.remove_node(message.name)
        else:
            self.trial.see(message)

    def _empty(self, name: str) -> None:
        """The node is emptied; nothing where that is over by now."""
        node = self.trial.cluster.nodes.get(name)
        if node is None:
            return
        how = "lost" if any(taint.effect == NO_EXECUTE for taint in node.spec.taints) else "drained"
        for uid_ in [uid_ for uid_ in self.pods if self.ledger.pods[uid_].node == name]:
            if is_emptied(self.trial.cluster.pods[uid_], node):
                self.end_pod(uid_, how)

    def _past_pod(self, past: PastPod, pod: Pod) -> None:
        if pod.spec.node_name and pod.spec.node_name not in self.node_items:
            self.left_out += 1
            return
        has_controller = pod.metadata.controller is not None
        given = {"recreate": has_controller, "past": pod.metadata.uid}
        template = Template((), pod.metadata.namespace, _ONCE, given)
        runs = past.ran
        if runs is not None and past.pod.spec.node_name:
            runs = max(0.0, (past.finished or 0.0) - self.scenario.start)
        self._pod_comes(SimulatedPod(template, pod, runs))

    def _pod_comes(self, pod: SimulatedPod) -> None:
        past = pod.template.given.get("past", "")
        if past not in self._gone:
            super()._pod_comes(pod)
            self._living[past] = pod.pod.metadata.uid

    def _edit(self, uid_: str, edited: Pod) -> None:
        """The pod has the labels, annotations and gates that it was given later."""
        new, gates = edited.metadata, edited.spec.scheduling_gates

        def changed(pod: Pod) -> Pod:
            metadata = msgspec.structs.replace(pod.metadata, labels=new.labels, annotations=new.annotations)
            spec = msgspec.structs.replace(pod.spec, scheduling_gates=gates)
            return msgspec.structs.replace(pod, metadata=metadata, spec=spec)

        now = self._living.get(uid_)
        if now in self.pods:
            self.change_pod(now, changed)

    def _leave(self, uid_: str) -> None:
        """Somebody deletes the pod: nobody makes it again."""
        self._gone.add(uid_)
        now = self._living.get(uid_)
        if now in self.pods:
            pod = self.pods[now]
            self.pods[now] = replace(pod, template=replace(pod.template, given={}))
            self.end_pod(now, "deleted")
