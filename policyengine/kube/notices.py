"""What nobody else would tell: a pod whose schedulerName nobody serves, policies where nobody reads them, and another
scheduler on the same nodes.

Rules:
1. A pod that has waited for `PATIENCE` and that no policy here serves is told so by an Event, once, and counted for a
   metric. Pods of a name that somebody serves are not: `default-scheduler`, and a name of which any pod has a node or a
   PodScheduled condition, which every scheduler writes. Nor are pods with a scheduling gate, or that are being deleted.
2. A ConfigMap or SchedulingPolicy with the label, outside the namespace that is read, is told so by an Event, once. One
   with a status is read by another installation. To look at other namespaces is a right of its own in `deploy/`.
   Without it nothing is told, and nothing is refused, as the right is asked about first.
3. Another scheduler that binds pods to nodes with pods of ours is told of in the log and by an Event on the first such
   node, once for each scheduler name, unless bindings are verified.
4. Only the leader tells. What was told is forgotten when another process leads: then it is told once more.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import NODES, PODS, Kind
from policyengine.cluster.objects import ObjectError, ObjectMeta, decode
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.control_characters import escaped
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, object_of
from policyengine.kube.policies.reports import event_about
from policyengine.kube.policies.scheduling_policy import FORMS, Form, selector
from policyengine.scheduler.actions import RecordEvent
from policyengine.scheduler.state import SchedulerState
from policyengine.suggestion import nearest_first

logger = logging.getLogger(__name__)

PERIOD = 30.0
"""Seconds between two looks."""
PATIENCE = 60.0
MOST = 500
"""Pods that are told at one look: the others at the next ones."""
NAMES = 5
"""Scheduler names that a note shows."""
_NEIGHBOUR = (
    "another scheduler binds pods of schedulerName `{name}` to node {node} {how}: each may overfill it for the other; "
    "{remedy} (docs/operations.md, Beside another scheduler)"
)
_SAME_NODES = (
    "beside pods of this one",
    "let one process serve all names, give each its own nodes, or have bindings verified",
)
_SAME_NAME = "though this one serves that name", "two installations need one Lease, or two names"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Notices:
    """Looks now and then, and tells."""

    def __init__(
        self,
        state: SchedulerState,
        client: Client,
        clock: Clock,
        record: Callable[[RecordEvent], None],
        leads: Callable[[], bool],
        namespace: str,
        label_selector: str,
    ) -> None:
        self._state = state
        self._client = client
        self._clock = clock
        self._record = record
        self._leads = leads
        self._namespace = namespace
        self._label_selector = label_selector
        self.not_served: Counter[str] = Counter()
        """Pods that nobody served at the last look, by schedulerName."""
        self._told: set[str] = set()
        """UIDs of the pods that were told and still wait."""
        self._told_policies: set[str] = set()
        self._told_neighbours: set[str] = set()
        self._seen: set[str] = set()
        """UIDs of the policies elsewhere that were there at the last look: another installation has had its time."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._clock.sleep(PERIOD)
            if not self._leads():
                self.not_served.clear()
                continue
            self.look_at_pods()
            self.look_at_neighbours()
            try:
                await self.look_elsewhere()
            except (ApiError, ConnectionFailed) as error:
                logger.debug("policies in other namespaces are not looked for: %s", error)

    def look_at_pods(self) -> None:
        """Tell of pods that nobody serves."""
        served = {profile.scheduler_name for profile in self._state.profiles} | {DEFAULT_SCHEDULER_NAME}
        alone: list[PodInfo] = []
        theirs = set(served)
        for pod in self._state.view.pods.values():
            if pod.scheduler_name in served:
                continue
            if pod.state is not PodState.PENDING or any(one.type == "PodScheduled" for one in pod.conditions):
                theirs.add(pod.scheduler_name)
            elif self._clock.now() - pod.created_at >= PATIENCE and not pod.deleting:
                alone.append(pod)
        alone = [pod for pod in alone if not (pod.scheduler_name in theirs or pod.shape.spec.scheduling_gates)]
        self.not_served = Counter(pod.scheduler_name for pod in alone)
        self._told &= {pod.uid for pod in alone}
        self._tell(
            [pod for pod in alone if pod.uid not in self._told][:MOST], sorted(served - {DEFAULT_SCHEDULER_NAME})
        )

    def _tell(self, pods: list[PodInfo], ours: list[str]) -> None:
        for pod in pods:
            self._told.add(pod.uid)
            names = ", ".join(nearest_first(pod.scheduler_name, ours)[:NAMES]) or "none"
            note = f"nobody serves schedulerName `{pod.scheduler_name}`; served by policies: {names}"
            self._record(event_about(PODS, pod, "NotServed", "Scheduling", note))

    def look_at_neighbours(self) -> None:
        """Tell of others who bind pods to the same nodes."""
        if self._state.verifies_bindings:
            return
        served = {profile.scheduler_name for profile in self._state.profiles}
        for name in self._state.neighbours.keys() - self._told_neighbours:
            self._told_neighbours.add(name)
            node = self._state.neighbours[name].node
            how, remedy = _SAME_NAME if name in served else _SAME_NODES
            note = _NEIGHBOUR.format(name=escaped(name), node=node, how=how, remedy=remedy)
            logger.warning("%s", note)
            about = ObjectMeta(name=node, uid=node)
            self._record(event_about(NODES, about, "SharedWithOtherScheduler", "Binding", note))

    async def look_elsewhere(self) -> None:
        """Tell of policies in namespaces that are not read. Raises `ApiError`, `ConnectionFailed`."""
        seen: set[str] = set()
        for form in FORMS:
            kind = form.KIND
            if not await self._may_list(kind):
                continue
            for about in await self._elsewhere(form):
                seen.add(about.uid)
                if about.uid in self._seen and about.uid not in self._told_policies:
                    self._told_policies.add(about.uid)
                    note = f"policies are read in namespace `{self._namespace}`; nobody reads this one"
                    self._record(event_about(kind, about, "PolicyNotRead", "Loading", note))
        self._seen = seen
        self._told_policies &= seen

    async def _may_list(self, kind: Kind[Any]) -> bool:
        wanted = {"verb": "list", "group": kind.group, "resource": kind.plural}
        spec = {"resourceAttributes": wanted}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        status = object_of(await self._client.call("POST", _REVIEWS, review)).get("status") or {}
        return bool(status.get("allowed"))

    async def _elsewhere(self, form: Form) -> list[ObjectMeta]:
        """Those with the label and without a status."""
        found: list[ObjectMeta] = []
        kind: Kind[Any] = form.KIND
        try:
            async for raw in self._client.list_all(kind, label_selector=selector(form, self._label_selector)):
                with suppress(ObjectError):  # whatever is wrong with it, nobody says here
                    source = form(decode(kind.type, raw))
                    if source.metadata.namespace != self._namespace and not source.is_answered:
                        found.append(source.metadata)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:  # else a kind that this cluster has not
                raise
        return found
