"""Extenders that have a say in who leaves for a pod: asked between DefaultPreemption's candidates and its choice.

    no node fits ──candidates──> AskAboutVictims ···· the pod stays in flight; other pods are tried meanwhile
                                       │
                               VictimsAnswered ─judge again─> a node fits now ──> attempted anew
                                       ├── nodes and victims ──> the best of them is cleared
                                       └── none, or an error ──> refused; an earlier nomination stays

Rules (`callExtenders`, framework/preemption/preemption.go, v1.36):
1. An extender may take nodes away, and choose others of a node's pods. What it leaves is what the next one is asked.
2. An error ends the preemption, not the attempt: the pod is refused, with what went wrong.
3. kube-scheduler evicts whomever an extender names. Here nobody goes whom priority, a quota or the policy's `preempt`
   keep, and a gang goes as a whole: a node where an extender names such a pod is passed over.
"""

from __future__ import annotations

from policyengine.framework.filtering import Diagnosis
from policyengine.framework.post_filter import PostFilterResult
from policyengine.framework.status import Code, Status
from policyengine.plugins.preemption.candidate_node import Candidate
from policyengine.plugins.preemption.default_preemption import NAME, DefaultPreemption
from policyengine.scheduler.actions import AskAboutVictims, NodeVictims
from policyengine.scheduler.core import Core
from policyengine.scheduler.extenders import extender
from policyengine.scheduler.extenders.extender import Question
from policyengine.scheduler.messages import ExtendersAnswered, VictimsAnswered
from policyengine.scheduler.profiles import Lane
from policyengine.scheduler.queue.queued_pod import QueuedPod


def ask(
    core: Core,
    lane: Lane,
    queued: QueuedPod,
    diagnosis: Diagnosis,
    found: PostFilterResult,
    answered: ExtendersAnswered | None,
) -> bool:
    """Ask about the candidates where extenders have a say; whether they were asked. `answered`: what was said of the
    pod's nodes before."""
    pod = queued.pod
    numbers = extender.preempting(core, pod)
    plugin = _plugin(lane)
    if not numbers or plugin is None or found.status.plugin != NAME or not found.victims:
        return False
    candidates = plugin.candidates(pod, diagnosis, lane.serving.evaluator, core.view)
    names = core.view.nodes.names
    core.actions.append(
        AskAboutVictims(
            pod.uid,
            pod.namespace,
            pod.name,
            extender.note(core, lane, queued, numbers, answered),
            numbers,
            {names[one.row]: NodeVictims(tuple(pod.uid for pod in one.victims), one.violations) for one in candidates},
            {names[one.row]: _known(core, one) for one in candidates},
        )
    )
    return True


def chosen(core: Core, question: Question, diagnosis: Diagnosis, message: VictimsAnswered) -> PostFilterResult:
    """The room that is left to be made, as things stand now."""
    plugin = _plugin(question.lane)
    assert plugin is not None, "the question was asked by this policy"
    if message.error:
        return PostFilterResult(Status(Code.UNSCHEDULABLE, (f"preemption: {message.error}",)))
    victims = {name: (one.pods, one.violations) for name, one in message.victims.items()}
    return plugin.chosen(question.queued.pod, diagnosis, question.serving.evaluator, core.view, victims)


def _plugin(lane: Lane) -> DefaultPreemption | None:
    return next((one for one in lane.serving.post_filters if isinstance(one, DefaultPreemption)), None)


def _known(core: Core, candidate: Candidate) -> dict[str, tuple[str, str]]:
    standing = core.view.nodes.pods_on(candidate.row).values()
    return {pod.uid: (pod.namespace, pod.name) for pod in (*candidate.victims, *standing)}
