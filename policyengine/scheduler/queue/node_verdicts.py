"""Whether what happened on one node can help a pod that a filter refused: the filter is asked about that node again.

Rules:
1. Of a filter that judges each node by that node alone, no other verdict than the one on the node of the event is
   another than before. Where it, or another such filter that refused the pod too, still refuses that node, the pod need
   not be tried again: each of them is asked anew after whatever can turn its verdict. A filter that did not refuse the
   pod is not asked: nothing would wake the pod once it lets the node pass.
2. A pod that may have others evicted is woken: what their going would do to the filters is another matter, on all
   nodes. So is every pod where more than priorities says who may be evicted (quotas, `preempt`, other plugins than
   DefaultPreemption).
3. A gang's pods are placed together, so that the verdict on one of them says little: they are woken. So is a pod that
   the event itself is about, one that is nominated to a node, which an attempt that comes to nothing gives up for
   others, and one whose filter fails.
4. At most `MOST_ASKED` verdicts are asked for after one event: to ask about each of a thousand shapes would hold up
   decisions, and a needless attempt does no harm.

kube-scheduler has NodeResourcesFit ask less: any pod that goes wakes every pod that it refused
(`isSchedulableAfterPodEvent`, plugins/noderesources/fit.go, v1.36).

Example: 400 pods that ask for 3 cpus wait. A pod of 1 cpu ends on node a, which now has 1 cpu free. NodeResourcesFit is
asked once whether node a would take a pod of 3 cpus, says no, and none of the 400 is tried. kube-scheduler tries all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from functools import cached_property
from math import inf
from typing import Any, Final

import numpy as np

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.plugin import (
    FilterPlugin,
    ObjectReader,
    PreEnqueuePlugin,
    SituationReader,
    TopologyPlugin,
    extends,
)
from policyengine.framework.post_filter import SumsReader
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PermitPlugin, PreBindPlugin, ReservePlugin
from policyengine.scheduler.queue.queued_pods import QueuedPod

Buckets = Iterable[tuple[str, Hashable]]
MOST_ASKED: Final = 32
_REFUSES_ELSEWHERE = (PreEnqueuePlugin, ReservePlugin, PermitPlugin, PreBindPlugin)
_BY_PRIORITY = frozenset({"DefaultPreemption", "DynamicResources"})
"""The PostFilter plugins that evict nobody whose priority is not lower; the second one gives back claims' devices."""


class Help(Enum):
    """What an event can do for a refused pod."""

    NONE = "none"
    """Nothing: the event's node still refuses it."""
    PERHAPS = "perhaps"
    ROOM = "room"
    """It is the event's node that the pod fits on now, as far as such filters say."""


class NodeVerdicts:
    """Asks the filters of one profile about single nodes."""

    def __init__(self, profile: Profile, view: ClusterView) -> None:
        self.view = view
        asked: dict[str, list[object]] = {}
        for plugin in {id(one): one for one in profile.plugins()}.values():
            if plugin.events_to_register():
                asked.setdefault(plugin.name, []).append(plugin)
        self.filters = {
            name: plugins[0]
            for name, plugins in asked.items()
            if len(plugins) == 1 and extends(plugins[0], FilterPlugin) and _judges_nodes_alone(plugins[0])
        }
        """Those of which rule 1 holds, by name."""
        self.evicts = bool(profile.post_filters)
        names = {plugin.name for plugin in profile.post_filters}
        self.by_priority = not profile.quotas and profile.preempt is None and names <= _BY_PRIORITY
        """Whether priorities alone say who may be evicted."""

    def after(self, old: Any, new: Any) -> VerdictsAfter:
        """What to ask after an event with these objects. The cluster must not change meanwhile."""
        return VerdictsAfter(self, old, new)


class VerdictsAfter:
    """The verdicts on the nodes of one event, each asked for once."""

    def __init__(self, verdicts: NodeVerdicts, old: Any, new: Any) -> None:
        self._of, self._view, self._left = verdicts, verdicts.view, MOST_ASKED
        self._own = {one.uid for one in (old, new) if isinstance(one, PodInfo)}
        self._known: dict[tuple[str, Hashable], bool] = {}
        names, rows = _nodes_of(old) | _nodes_of(new), self._view.nodes.row_of
        self._rows = [rows[name] for name in names] if all(name in rows for name in names) else []

    def tell_of(self, plugin: str) -> bool:
        """Whether the verdicts on these nodes are all that the event can change for the plugin."""
        return plugin in self._of.filters

    @cached_property
    def apart(self) -> set[str]:
        """UIDs of the pods that are woken whatever the verdict on those like them: rule 3."""
        return self._own.union(*self._view.nominated.values())

    def on(self, queued: QueuedPod, by: Buckets) -> Help:
        """What the event can do for a pod that such a filter would wake, and for all that are like it but those that
        stand apart. `by`: who refused it, with what pods have in common that one verdict is for."""
        pod = queued.pod
        if not self._rows or self._may_evict(pod) or self._view.scheduling.members(pod):
            return Help.PERHAPS
        refused = self._are_refused(pod, by)
        return Help.PERHAPS if refused is None else Help.NONE if refused else Help.ROOM

    def _are_refused(self, pod: PodInfo, by: Buckets) -> bool | None:
        """Whether one of the filters refuses all these nodes; None where not all could be asked."""
        try:
            for name, alike in by:
                if name in self._of.filters:
                    if (name, alike) not in self._known:
                        if not self._left:
                            return None
                        self._left -= 1
                        self._known[name, alike] = self._refuses(self._of.filters[name], pod)
                    if self._known[name, alike]:
                        return True
        except Exception:
            return None  # the pod is woken, and its next attempt tells what failed
        return False

    def _refuses(self, plugin: FilterPlugin, pod: PodInfo) -> bool:
        snapshot = self._view.snapshot()
        status, state = plugin.pre_filter(pod, snapshot)
        rows = np.array(self._rows, dtype=np.int64)
        return status.is_success and bool(plugin.filter(state, snapshot, rows).refused.all())

    def _may_evict(self, pod: PodInfo) -> bool:
        """Rule 2."""
        if not self._of.evicts or pod.shape.spec.preemption_policy == "Never":
            return False
        return not self._of.by_priority or min(self._view.nodes.priorities, default=inf) < pod.priority


def _judges_nodes_alone(plugin: FilterPlugin) -> bool:
    if extends(plugin, TopologyPlugin) or any(extends(plugin, point) for point in _REFUSES_ELSEWHERE):
        return False
    if extends(plugin, SumsReader) and plugin.reads_only_sums:
        return True
    has_situation = extends(plugin, SituationReader) and plugin.situation is not None
    return not has_situation and not extends(plugin, ObjectReader)


def _nodes_of(changed: Any) -> set[str]:
    """The nodes that an event's object is, is on, or is nominated to."""
    if isinstance(changed, Node):
        return {changed.metadata.name}
    if isinstance(changed, PodInfo):
        return {name for name in (changed.node_name, changed.nominated_node_name) if name}
    return set()
