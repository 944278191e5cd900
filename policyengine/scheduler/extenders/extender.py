"""Programs outside that have a say in where a pod goes: kube-scheduler's extenders, between Filter and Score.

    popped ──judge──> nodes fit ──is an extender interested?── no ──> pick
                                       │ yes
                                AskExtenders ···· the pod stays in flight; other pods are tried meanwhile
                                       │
                               ExtendersAnswered ─judge again─> still fits ──> pick, their scores added
                                       ├── none that they let through fits any more ──> refused (`extender_victims`)
                                       ├── an error ──> SchedulerError, error backoff
                                       └── another policy serves meanwhile ──> asked anew

Rules:
1. An answer decides nothing by itself: it is held against the snapshot at which it arrives. Nodes that came to fit
   since the question are not taken, because no extender has seen them.
2. A pod is asked about once at a time; the answer to an earlier question is passed over.
3. An extender without managed resources is interested in every pod, another one in those of which a container names
   one of them in its requests or limits, whatever the amount (`IsInterested`, extender.go, v1.36).
4. A pod that an extender refused moves by any event: nobody knows what the extender waits for.
5. Members of a gang in which an extender is interested are tried one by one and wait for each other at Permit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from policyengine.framework.filtering import Diagnosis
from policyengine.framework.status import Code, Status
from policyengine.scheduler.actions import AskExtenders
from policyengine.scheduler.core import Core
from policyengine.scheduler.messages import ExtendersAnswered, VictimsAnswered
from policyengine.scheduler.placement import judge, pick
from policyengine.scheduler.profiles import Lane, Serving
from policyengine.scheduler.queue.queued_pod import Place, QueuedPod

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.scheduler.gangs.gang import Gang

UNSEEN = "node(s) came to fit after the extenders were asked"


@dataclass(frozen=True, slots=True)
class Extender:
    """What the core has to know of one."""

    name: str
    """By which refusals are signed: its URL prefix."""
    resources: frozenset[str] = frozenset()
    """Those that it manages; empty for all pods."""
    decides: bool = True
    """Whether it filters or scores."""
    preempts: bool = False
    """Whether it has a say in who leaves for a pod."""
    binds: bool = False
    unchecked: frozenset[str] = frozenset()
    """Resources that NodeResourcesFit leaves to it (`ignored_resources`)."""

    def is_interested(self, pod: PodInfo) -> bool:
        """Rule 3."""
        return not self.resources or any(
            not self.resources.isdisjoint(amounts)
            for container in (*pod.shape.spec.containers, *pod.shape.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked and is not answered yet."""

    number: int
    lane: Lane
    queued: QueuedPod
    serving: Serving
    """The policy by which the nodes were found."""
    answered: ExtendersAnswered | None = None
    """What was said of its nodes before, where the question is about victims."""


def interested(core: Core, pod: PodInfo) -> tuple[int, ...]:
    """The numbers of the extenders that have a say in where the pod goes."""
    return tuple(at for at, one in enumerate(core.extenders) if one.decides and one.is_interested(pod))


def preempting(core: Core, pod: PodInfo) -> tuple[int, ...]:
    """The numbers of the extenders that have a say in who leaves for the pod."""
    return tuple(at for at, one in enumerate(core.extenders) if one.preempts and one.is_interested(pod))


def binder(core: Core, pod: PodInfo) -> int | None:
    """The number of the extender that binds the pod; None where that is ours to do."""
    if not core.extenders:
        return None
    return next((at for at, one in enumerate(core.extenders) if one.binds and one.is_interested(pod)), None)


def concern(core: Core, gang: Gang) -> bool:
    """Whether a member of the gang has to be asked about."""
    members = (core.view.pods[uid] for uid in gang.members if uid in core.view.pods)
    return bool(core.extenders) and any(interested(core, pod) or preempting(core, pod) for pod in members)


def ask(core: Core, lane: Lane, queued: QueuedPod, numbers: tuple[int, ...], diagnosis: Diagnosis) -> None:
    """Ask the extenders of these numbers about the feasible nodes."""
    pod, names = queued.pod, core.view.snapshot().nodes.names
    number = note(core, lane, queued, numbers)
    nodes = tuple(names[row] for row in diagnosis.feasible.tolist())
    core.actions.append(AskExtenders(pod.uid, pod.namespace, pod.name, number, numbers, nodes))


def note(
    core: Core, lane: Lane, queued: QueuedPod, numbers: tuple[int, ...], answered: ExtendersAnswered | None = None
) -> int:
    """A question is about to be asked: its number."""
    core.questions += 1
    core.consulted[queued.uid] = Question(core.questions, lane, queued, lane.serving, answered)
    core.story.tell(queued.uid, core.now, "consulting", ", ".join(core.extenders[at].name for at in numbers))
    return core.questions


def awaited(core: Core, message: ExtendersAnswered | VictimsAnswered) -> Question | None:
    """The question, where its answer is still waited for."""
    asked = message.asked
    question = core.consulted.get(asked.uid)
    if question is None or question.number != asked.number:
        return None
    del core.consulted[asked.uid]
    queued = question.lane.queue.get(asked.uid)
    return question if queued is question.queued and queued.place is Place.IN_FLIGHT else None


def judge_again(core: Core, lane: Lane, queued: QueuedPod, message: ExtendersAnswered) -> Diagnosis:
    """The verdict as things stand now, with what the extenders refused."""
    diagnosis = judge(core, lane, queued.pod)
    names = core.view.snapshot().nodes.names
    asked = frozenset(message.asked.nodes)
    refusals: dict[int, Status] = {}
    for row in diagnosis.feasible.tolist():
        name = names[row]
        if name in message.refused:
            extender, reason = message.refused[name]
            refusals[row] = Status(Code.UNSCHEDULABLE, (reason,), extender)
        elif name in message.unresolvable:
            extender, reason = message.unresolvable[name]
            refusals[row] = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), extender)
        elif name not in asked:
            refusals[row] = Status(Code.UNSCHEDULABLE, (UNSEEN,), core.extenders[message.asked.extenders[0]].name)
    return diagnosis.also_refused(refusals) if refusals else diagnosis


def pick_with(core: Core, lane: Lane, queued: QueuedPod, diagnosis: Diagnosis, scores: Mapping[str, int]) -> int:
    """The row of the node to take: as `pick`, with the extenders' weighted scores added."""
    snapshot = core.view.snapshot()
    evaluator, pod = lane.serving.evaluator, queued.pod
    if not scores or len(diagnosis.feasible) == 1 or pod.nominated_node_name:
        return pick(evaluator, pod, snapshot, diagnosis)
    node_scores = evaluator.score(pod, snapshot, diagnosis)
    names = snapshot.nodes.names
    more = np.array([scores.get(names[row], 0) for row in node_scores.rows.tolist()], dtype=np.int64)
    return replace(node_scores, rest=more if node_scores.rest is None else node_scores.rest + more).best(pod.uid)
