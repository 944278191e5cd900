"""Which changes may cure a refusal by InterPodAffinity (kube-scheduler's queueing hints for it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from policyengine.cluster.objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource
from policyengine.plugins.event_hints import on
from policyengine.plugins.selectors.affinity_term import Term, terms_of

_NO_LABELS: Final[Mapping[str, str]] = {}


def affinity_events() -> Sequence[ClusterEventWithHint]:
    """The registrations."""
    pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
    nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    return (
        on(Resource.POD, pods, _pod_changed),
        on(Resource.NODE, nodes, _node_changed),
    )


def _pod_changed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    if any(one is not None and not (one.node_name or one.nominated_node_name) for one in (old, new)):
        return False
    terms = terms_of(pod)
    if terms.problem is not None:
        return True
    if old is not None and new is not None:
        came_to_match = not _all_mean(terms.affinity, old) and _all_mean(terms.affinity, new)
        ceased_to = _all_mean(terms.anti_affinity, old) and not _all_mean(terms.anti_affinity, new)
        return came_to_match or ceased_to
    if new is not None:
        return _all_mean(terms.affinity, new)
    if old is None:
        return False
    return _all_mean(terms.anti_affinity, old) or _all_mean(terms_of(old).anti_affinity, pod)


def _all_mean(terms: Sequence[Term], pod: PodInfo) -> bool:
    """Whether there are terms and all mean the pod. A namespace selector may mean its namespace: it counts as
    matching, since a hint does not see namespaces; at worst the pod is asked once too often."""
    return bool(terms) and all(
        (pod.namespace in term.namespaces or not term.namespace_selector.nothing) and term.selector.matches(pod.labels)
        for term in terms
    )


def _node_changed(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    terms = terms_of(pod)
    if new is None:
        return False
    if terms.problem is not None:
        return True
    before = _NO_LABELS if old is None else old.metadata.labels
    after = new.metadata.labels
    for term in terms.affinity:
        if term.key in after and after[term.key] != before.get(term.key):
            return True
    for term in terms.anti_affinity:
        if old is None or (term.key in before and after.get(term.key) != before[term.key]):
            return True
    return False
