"""What could be done about a refusal, plugin by plugin. Proposals only: `suggest` tries each of them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from policyengine.cluster.node_objects import Taint
from policyengine.cluster.pod_objects import Toleration
from policyengine.diagnosis import changed_spec, kubectl_commands, node_remedies, policy_remedies, queue_remedies
from policyengine.diagnosis.node_remedies import taint_text
from policyengine.diagnosis.victims import free_room, nearest_fit
from policyengine.diagnosis.what_if import Attempt, Change, Edit, WhatIf
from policyengine.framework.status import Rows
from policyengine.plugins.affinity.inter_pod_affinity import InterPodAffinity
from policyengine.plugins.affinity.node_affinity import NodeAffinity
from policyengine.plugins.devices.dynamic_resources import DynamicResources
from policyengine.plugins.node_state.node_declared_features import NodeDeclaredFeatures
from policyengine.plugins.node_state.node_ports import NodePorts
from policyengine.plugins.node_state.node_unschedulable import NodeUnschedulable
from policyengine.plugins.node_state.taint_toleration import TaintToleration
from policyengine.plugins.resources.fit import NodeResourcesFit
from policyengine.plugins.selectors.tolerations import HARD, UNSCHEDULABLE_TAINT, untolerated
from policyengine.plugins.topology.pod_topology_spread import PodTopologySpread
from policyengine.plugins.volumes.node_volume_limits import NodeVolumeLimits
from policyengine.plugins.volumes.volume_binding import VolumeBinding
from policyengine.plugins.volumes.volume_restrictions import VolumeRestrictions
from policyengine.plugins.volumes.volume_zone import VolumeZone

Remedy = Callable[[Attempt, WhatIf, Rows], Iterator[Attempt]]
_TAINT_SETS: Final = 4
"""Different sets of taints that are looked at."""
SPREAD: Final = ("topology_spread_constraints",)


def remedies(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """Further changes that could have the pod placed: about what keeps it from being tried, and about the plugins that
    refuse it."""
    evaluator, refused = what_if.evaluator(attempt), what_if.refused(attempt)
    if evaluator is None or refused is None:
        yield from queue_remedies.served(attempt, what_if)
        return
    yield from queue_remedies.ungated(attempt)
    yield from queue_remedies.whole(attempt, what_if)
    quotas, filters = (
        {one.name for one in rules} for rules in (evaluator.profile.quotas.rules, evaluator.profile.filters)
    )
    for plugin, rows in refused.items():
        if plugin in _REMEDIES:
            yield from _REMEDIES[plugin](attempt, what_if, rows)
            continue
        if plugin in quotas:
            yield from policy_remedies.quota(attempt, what_if)
        if plugin in filters or plugin not in quotas:
            yield from policy_remedies.rule(attempt, what_if, rows, plugin)
    if refused and not refused.keys() & (quotas - filters):
        yield from node_remedies.more(attempt, what_if)
    yield from policy_remedies.params(attempt, what_if)


def _fit(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    near = nearest_fit(attempt, what_if, rows) if what_if.left == 1 else None
    if near is not None:
        changed: Attempt | None = attempt
        for resource, free in near.items():
            if changed is not None:
                had = changed.pod.shape.requests.get(resource)
                changed = policy_remedies.requested(changed, resource, had, free)
        if changed is not None:
            yield changed
    if what_if.left > 1:
        yield from policy_remedies.less(attempt, what_if)
    yield from free_room(attempt, what_if, rows)


def _taints(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    nodes, spec = what_if.view.nodes, attempt.pod.shape.spec
    counts: dict[int, int] = {}
    for number in nodes.derived.ids("taints", "")[rows].tolist():
        counts[number] = counts.get(number, 0) + 1
    for number in sorted(counts, key=lambda number: (-counts[number], number))[:_TAINT_SETS]:
        changed = attempt
        for taint in untolerated(spec.tolerations, nodes.derived.values("taints", "")[number], HARD):
            changed = _tolerate(changed, taint)
        yield changed
    yield from node_remedies.untainted(attempt, what_if, rows)


def _tolerate(attempt: Attempt, taint: Taint, cost: float = 1.2) -> Attempt:
    text = taint_text(taint)
    detail = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    pod, added = attempt.pod, Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    path, value = "/spec/tolerations", {**detail, "operator": "Equal"}
    some = pod.shape.spec.tolerations
    patch = {"op": "add", "path": f"{path}/-" if some else path, "value": value if some else [value]}
    line = kubectl_commands.patch("pod", attempt.names, pod.namespace, "json", [patch])
    change = Change("tolerate", text, f"tolerate the taint {text}", cost, detail, line)
    return attempt.with_spec(change, lambda spec: replace(spec, tolerations=(*spec.tolerations, added)))


def _cordoned(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    yield from node_remedies.uncordoned(attempt, what_if, rows)
    yield _tolerate(attempt, UNSCHEDULABLE_TAINT, cost=2.0)


def _node_affinity(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for key, value in spec.node_selector.items():
        text = f"drop `{key}: {value}` from nodeSelector"
        change = Change("drop", f"nodeSelector {key}", text, 1.3, {"nodeSelector": {key: value}})
        kept = {name: text for name, text in spec.node_selector.items() if name != key}
        yield attempt.with_spec(change, partial(replace, node_selector=kept))
    for expression in changed_spec.required_node_expressions(spec):
        told = f"{expression.key} {expression.operator} {', '.join(expression.values)}".strip()
        wanted = {"key": expression.key, "operator": expression.operator, "values": list(expression.values)}
        change = Change(
            "drop", f"nodeAffinity {told}", f"drop `{told}` from required node affinity", 1.3, {"nodeAffinity": wanted}
        )
        yield attempt.with_spec(change, partial(changed_spec.without_node_expression, expression=expression))
    yield from node_remedies.labelled(attempt, what_if, rows)


def _ports(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    for port in sorted({port for _, _, port in attempt.pod.shape.host_ports}):
        change = Change("drop", f"hostPort {port}", f"drop hostPort {port}", 1.3, {"hostPort": port})
        yield attempt.with_spec(change, partial(changed_spec.without_host_port, port=port))
    yield from free_room(attempt, what_if, rows)


def _pod_affinity(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for field, name in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        side = getattr(spec.affinity, field, None)
        for place, term in enumerate(getattr(side, changed_spec.REQUIRED, ())):
            text = f"drop the required {name} over {term.topology_key}"
            change = Change("drop", f"{name} {place}", text, 1.4, {name: {"topologyKey": term.topology_key}})
            yield attempt.with_spec(change, _instead(("affinity", field, changed_spec.REQUIRED), term))
    yield from free_room(attempt, what_if, rows)


def _instead(path: Sequence[str], item: object, *items: object) -> Edit:
    return lambda spec: changed_spec.with_instead(spec, path, item, *items)


def _spread(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for place, one in enumerate(spec.topology_spread_constraints):
        if one.when_unsatisfiable != "DoNotSchedule":
            continue
        key, wider = one.topology_key, one.max_skew + 1
        detail = {"topologyKey": key, "maxSkew": wider}
        change = Change("relax", f"spread {place}", f"allow maxSkew {wider} over {key}", 1.2, detail)
        yield attempt.with_spec(change, _instead(SPREAD, one, replace(one, max_skew=wider)))
        detail = {"topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
        change = Change("relax", f"spread {place} anyway", f"spread over {key} with ScheduleAnyway", 1.4, detail)
        soft = replace(one, when_unsatisfiable="ScheduleAnyway")
        yield attempt.with_spec(change, _instead(SPREAD, one, soft))


def _volumes(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    yield from queue_remedies.claimed(attempt, what_if)
    for volume in attempt.pod.shape.spec.volumes:
        claim = volume.persistent_volume_claim
        text = f"drop the volume {volume.name}" + (f", claim {claim.claim_name}" if claim is not None else "")
        change = Change("drop", f"volume {volume.name}", text, 1.6, {"volume": volume.name})
        yield attempt.with_spec(change, _instead(("volumes",), volume))


def _devices(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    for claim in attempt.pod.shape.spec.resource_claims:
        text = f"drop the resource claim {claim.name}"
        change = Change("drop", f"claim {claim.name}", text, 1.6, {"resourceClaim": claim.name})
        yield attempt.with_spec(change, _instead(("resource_claims",), claim))


_REMEDIES: Final[dict[str, Remedy]] = {
    NodeResourcesFit.name: _fit,
    TaintToleration.name: _taints,
    NodeUnschedulable.name: _cordoned,
    NodeAffinity.name: _node_affinity,
    NodePorts.name: _ports,
    InterPodAffinity.name: _pod_affinity,
    PodTopologySpread.name: _spread,
    VolumeRestrictions.name: _volumes,
    NodeVolumeLimits.name: _volumes,
    VolumeBinding.name: _volumes,
    VolumeZone.name: _volumes,
    DynamicResources.name: _devices,
    NodeDeclaredFeatures.name: lambda attempt, what_if, rows: iter(()),  # a request is not what is in the way
}
