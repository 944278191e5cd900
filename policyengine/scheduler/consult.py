"""Programs outside that have a say in where a pod goes: kube-scheduler's extenders, between Filter and Score.

    popped ──filter─> nodes fit ──is an extender interested?── no ──> select
                                       │ yes
                                AskExtenders ···· the pod stays in flight; other pods are tried meanwhile
                                       │
                               ExtendersAnswered ─filter again> still fits ──> select, their scores added
                                       ├── none that they let through fits any more ──> refused, or victims asked about
                                       ├── an error ──> SchedulerError, error backoff
                                       └── another policy serves meanwhile ──> asked anew

Rules:
1. An answer decides nothing by itself: it is held against the snapshot at which it arrives. Nodes that came to fit
   since the question are not taken, because no extender has seen them.
2. A pod is asked about once at a time; the answer to an earlier question is passed over.
3. A pod that an extender refused moves by any event: nobody knows what the extender waits for.
4. Members of a gang in which an extender is interested are tried one by one and wait for each other at Permit.

Extenders that preempt are asked about victims between DefaultPreemption's candidates and its choice.

    no node fits ──candidates──> AskAboutVictims ···· the pod stays in flight; other pods are tried meanwhile
                                       │
                               VictimsAnswered ─filter again> a node fits now ──> attempted anew
                                       ├── nodes and victims ──> the best of them is cleared
                                       └── none, or an error ──> refused; an earlier nomination stays

Rules (`callExtenders`, framework/preemption/preemption.go, v1.36):
1. An extender may take nodes away, and choose others of a node's pods. What it leaves is what the next one is asked.
2. An error ends the preemption, not the attempt: the pod is refused, with what went wrong.
3. kube-scheduler evicts whomever an extender names. Here nobody goes whom priority, a quota or the policy's `preempt`
   keep, and a gang goes as a whole: a node where an extender names such a pod is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.post_filter import PostFilterResult
from policyengine.framework.scoring import Choice
from policyengine.framework.status import Code, Status
from policyengine.plugins.preemption.candidate_node import Candidate
from policyengine.plugins.preemption.default_preemption import DefaultPreemption
from policyengine.scheduler.actions import AskAboutVictims, AskExtenders, NodeVictims
from policyengine.scheduler.core import Core
from policyengine.scheduler.extender import Question
from policyengine.scheduler.messages import ExtendersAnswered, VictimsAnswered
from policyengine.scheduler.placement import filter_nodes, select_node
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queued_pods import Place, QueuedPod

UNSEEN = "node(s) came to fit after the extenders were asked"


def interested(core: Core, pod: PodInfo) -> tuple[int, ...]:
    """The numbers of the extenders that have a say in where the pod goes."""
    return tuple(at for at, one in enumerate(core.extenders) if one.decides and one.is_interested(pod))


def preempting(core: Core, pod: PodInfo) -> tuple[int, ...]:
    """The numbers of the extenders that have a say in who leaves for the pod."""
    return tuple(at for at, one in enumerate(core.extenders) if one.preempts and one.is_interested(pod))


def concern(core: Core, gang: Gang) -> bool:
    """Whether a member of the gang has to be asked about."""
    members = (core.view.pods[uid] for uid in gang.members if uid in core.view.pods)
    return bool(core.extenders) and any(interested(core, pod) or preempting(core, pod) for pod in members)


def ask(core: Core, served: ServedProfile, queued: QueuedPod, numbers: tuple[int, ...], diagnosis: Diagnosis) -> None:
    """Ask the extenders of these numbers about the feasible nodes."""
    pod, names = queued.pod, core.view.snapshot().nodes.names
    number = note(core, served, queued, numbers)
    nodes = tuple(names[row] for row in diagnosis.feasible.tolist())
    core.actions.append(AskExtenders(pod.uid, pod.namespace, pod.name, number, numbers, nodes))


def note(
    core: Core,
    served: ServedProfile,
    queued: QueuedPod,
    numbers: tuple[int, ...],
    answered: ExtendersAnswered | None = None,
) -> int:
    """A question is about to be asked: its number."""
    core.last_number += 1
    core.consulted[queued.uid] = Question(core.last_number, served, queued, served.runtime, answered)
    core.timeline.record(queued.uid, core.now, "consulting", ", ".join(core.extenders[at].name for at in numbers))
    return core.last_number


def awaited(core: Core, message: ExtendersAnswered | VictimsAnswered) -> Question | None:
    """The question, where its answer is still waited for."""
    asked = message.asked
    question = core.consulted.get(asked.uid)
    if question is None or question.number != asked.number:
        return None
    del core.consulted[asked.uid]
    queued = question.served.queue.pods.get(asked.uid)
    return question if queued is question.queued and queued.place is Place.IN_FLIGHT else None


def filter_again(core: Core, served: ServedProfile, queued: QueuedPod, message: ExtendersAnswered) -> Diagnosis:
    """The verdict as things stand now, with what the extenders refused."""
    diagnosis = filter_nodes(core, served, queued.pod)
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


def select_node_with(
    core: Core, served: ServedProfile, queued: QueuedPod, diagnosis: Diagnosis, scores: Mapping[str, int]
) -> Choice:
    """The node to take: as `select_node`, with the extenders' weighted scores added."""
    snapshot = core.view.snapshot()
    evaluator, pod = served.runtime.evaluator, queued.pod
    if not scores or len(diagnosis.feasible) == 1 or pod.nominated_node_name:
        return select_node(evaluator, pod, snapshot, diagnosis)
    node_scores = evaluator.score(pod, snapshot, diagnosis)
    names = snapshot.nodes.names
    more = np.array([scores.get(names[row], 0) for row in node_scores.rows.tolist()], dtype=np.int64)
    first = served.runtime.profile.tiers
    tiers = [share.scores * share.weight for share in node_scores.shares if share.plugin in first]
    if tiers:  # extenders choose among the nodes of the best tier
        tier = np.sum(tiers, axis=0)
        more = np.where(tier == tier.max(), np.maximum(more, 0), 0)
    node_scores = replace(node_scores, more=more)
    return node_scores.choose(node_scores.best(pod.uid), diagnosis, names)


def ask_about_victims(
    core: Core,
    served: ServedProfile,
    queued: QueuedPod,
    diagnosis: Diagnosis,
    found: PostFilterResult,
    answered: ExtendersAnswered | None,
) -> bool:
    """Ask about the candidates where extenders have a say; whether they were asked. `answered`: what was said of the
    pod's nodes before."""
    pod = queued.pod
    numbers = preempting(core, pod)
    plugin = _plugin(served)
    if not numbers or plugin is None or found.status.plugin != plugin.name or not found.victims:
        return False
    candidates = plugin.candidates(pod, diagnosis, served.runtime.evaluator, core.view)
    names = core.view.nodes.names
    core.actions.append(
        AskAboutVictims(
            pod.uid,
            pod.namespace,
            pod.name,
            note(core, served, queued, numbers, answered),
            numbers,
            {names[one.row]: NodeVictims(tuple(pod.uid for pod in one.victims), one.violations) for one in candidates},
            {names[one.row]: _known(core, one) for one in candidates},
        )
    )
    return True


def room_left(core: Core, question: Question, diagnosis: Diagnosis, message: VictimsAnswered) -> PostFilterResult:
    """The room that is left to be made, as things stand now."""
    plugin = _plugin(question.served)
    assert plugin is not None, "the question was asked by this policy"
    if message.error:
        return PostFilterResult(Status(Code.UNSCHEDULABLE, (f"preemption: {message.error}",)))
    victims = {name: (one.pods, one.violations) for name, one in message.victims.items()}
    return plugin.chosen(question.queued.pod, diagnosis, question.runtime.evaluator, core.view, victims)


def _plugin(served: ServedProfile) -> DefaultPreemption | None:
    return next((one for one in served.runtime.post_filters if isinstance(one, DefaultPreemption)), None)


def _known(core: Core, candidate: Candidate) -> dict[str, tuple[str, str]]:
    standing = core.view.nodes.pods_on(candidate.row).values()
    return {pod.uid: (pod.namespace, pod.name) for pod in (*candidate.victims, *standing)}
