"""What could be done about a refusal, plugin by plugin. Proposals only: `suggest` tries each of them out.

A remedy for a policy's own rule is found by trying: how much less of a resource would it take?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from policyengine.cluster.node_objects import Taint
from policyengine.cluster.pod_objects import PodSpec, Toleration
from policyengine.diagnosis.free_capacity import free_ports, free_room, nearest_fit, roomiest
from policyengine.diagnosis.what_if import (
    REQUIRED,
    Attempt,
    Change,
    WhatIf,
    amount_text,
    replaced,
    requesting,
    required_node_expressions,
    without_host_port,
    without_node_expression,
)
from policyengine.framework.filtering import Diagnosis
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
_TRIES: Final = 14
"""Steps of a search for the largest request that a rule lets pass: within a ten-thousandth."""


def remedies(attempt: Attempt, what_if: WhatIf, diagnosis: Diagnosis) -> Iterator[Attempt]:
    """Further changes that could turn a refusal by one of the plugins that refused."""
    for plugin, rows in diagnosis.by_plugin().items():
        yield from _REMEDIES.get(plugin, _ask_for_less)(attempt, what_if, rows)


def _fit(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    near = nearest_fit(attempt, what_if, rows)
    if near is not None:
        changed = attempt
        for resource, free in near.items():
            had = changed.pod.shape.requests.get(resource)
            spec = requesting(changed.pod.shape.spec, resource, free)
            if spec is None:
                break
            change = _request(resource, had, free)
            changed = changed.with_spec(change, spec)
        else:
            yield changed
    yield from free_room(attempt, what_if, rows)


def _request(resource: str, had: int, now: int) -> Change:
    before, after = amount_text(resource, had), amount_text(resource, now)
    detail = {"resource": resource, "from": before, "to": after}
    return Change("request", resource, f"request {after} {resource} instead of {before}", 1 + (had - now) / had, detail)


def _taints(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    nodes, spec = what_if.view.nodes, attempt.pod.shape.spec
    counts: dict[int, int] = {}
    for number in nodes.taint_ids[rows].tolist():
        counts[number] = counts.get(number, 0) + 1
    for number in sorted(counts, key=lambda number: (-counts[number], number))[:_TAINT_SETS]:
        changed = attempt
        for taint in untolerated(spec.tolerations, nodes.taint_sets[number], HARD):
            changed = _tolerate(changed, taint)
        yield changed


def _tolerate(attempt: Attempt, taint: Taint, cost: float = 1.2) -> Attempt:
    text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    detail = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    change = Change("tolerate", text, f"tolerate the taint {text}", cost, detail)
    toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    spec = attempt.pod.shape.spec
    return attempt.with_spec(change, replace(spec, tolerations=(*spec.tolerations, toleration)))


def _cordoned(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    for row in roomiest(attempt, what_if, rows):
        name = what_if.view.nodes.names[row]
        change = Change("uncordon", "", f"uncordon {name}", 1.0, {"node": name})
        yield attempt.with_uncordoned(change, name)
    yield _tolerate(attempt, UNSCHEDULABLE_TAINT, cost=2.0)


def _node_affinity(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for key, value in spec.node_selector.items():
        text = f"drop `{key}: {value}` from nodeSelector"
        change = Change("drop", f"nodeSelector {key}", text, 1.3, {"nodeSelector": {key: value}})
        others = {name: kept for name, kept in spec.node_selector.items() if name != key}
        yield attempt.with_spec(change, replace(spec, node_selector=others))
    for expression in required_node_expressions(spec):
        told = f"{expression.key} {expression.operator} {', '.join(expression.values)}".strip()
        detail = {
            "nodeAffinity": {
                "key": expression.key,
                "operator": expression.operator,
                "values": list(expression.values),
            }
        }
        change = Change("drop", f"nodeAffinity {told}", f"drop `{told}` from required node affinity", 1.3, detail)
        yield attempt.with_spec(change, without_node_expression(spec, expression))


def _ports(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for port in sorted({port for _, _, port in attempt.pod.shape.host_ports}):
        change = Change("drop", f"hostPort {port}", f"drop hostPort {port}", 1.3, {"hostPort": port})
        yield attempt.with_spec(change, without_host_port(spec, port))
    yield from free_ports(attempt, what_if, rows)


def _pod_affinity(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for field, name in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        side = getattr(spec.affinity, field, None)
        for place, term in enumerate(getattr(side, REQUIRED, ())):
            text = f"drop the required {name} over {term.topology_key}"
            change = Change("drop", f"{name} {place}", text, 1.4, {name: {"topologyKey": term.topology_key}})
            yield attempt.with_spec(change, _with_place(spec, ("affinity", field, REQUIRED), place))


def _with_place(spec: PodSpec, path: Sequence[str], place: int, *items: object) -> PodSpec:
    """The spec with one item of a list replaced, or left out."""
    return replaced(spec, path, lambda listed: (*listed[:place], *items, *listed[place + 1 :]))


def _spread(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for place, one in enumerate(spec.topology_spread_constraints):
        if one.when_unsatisfiable != "DoNotSchedule":
            continue
        key, wider = one.topology_key, one.max_skew + 1
        detail = {"topologyKey": key, "maxSkew": wider}
        change = Change("relax", f"spread {place}", f"allow maxSkew {wider} over {key}", 1.2, detail)
        yield attempt.with_spec(change, _with_place(spec, SPREAD, place, replace(one, max_skew=wider)))
        detail = {"topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
        change = Change("relax", f"spread {place} anyway", f"spread over {key} with ScheduleAnyway", 1.4, detail)
        soft = replace(one, when_unsatisfiable="ScheduleAnyway")
        yield attempt.with_spec(change, _with_place(spec, SPREAD, place, soft))


def _volumes(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for place, volume in enumerate(spec.volumes):
        claim = volume.persistent_volume_claim
        text = f"drop the volume {volume.name}" + (f", claim {claim.claim_name}" if claim is not None else "")
        change = Change("drop", f"volume {volume.name}", text, 1.6, {"volume": volume.name})
        yield attempt.with_spec(change, _with_place(spec, ("volumes",), place))


def _devices(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    spec = attempt.pod.shape.spec
    for place, claim in enumerate(spec.resource_claims):
        text = f"drop the resource claim {claim.name}"
        change = Change("drop", f"claim {claim.name}", text, 1.6, {"resourceClaim": claim.name})
        yield attempt.with_spec(change, _with_place(spec, ("resource_claims",), place))


def _nothing(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """A request is not what is in the way."""
    return iter(())


def _ask_for_less(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """A rule of the policy: the largest request it lets pass on some node, resource by resource."""
    for resource, had in attempt.pod.shape.amounts:
        least, most = 1, had
        best: Attempt | None = None
        for _ in range(_TRIES):
            if least >= most:
                break
            target = _round(resource, (least + most) // 2)
            spec = requesting(attempt.pod.shape.spec, resource, target)
            if spec is None:
                break
            tried = attempt.with_spec(_request(resource, had, target), spec)
            if len(what_if.filter(tried).feasible):
                best, least = tried, max(target, (least + most) // 2) + 1
            else:
                most = min(target, (least + most) // 2)
        if best is not None:
            yield best


def _round(resource: str, amount: int) -> int:
    """Down to what one would write: 10m of cpu, 1Mi of memory; never to nothing."""
    grain = {"cpu": 10, "memory": 1 << 20, "ephemeral-storage": 1 << 20}.get(resource, 1)
    return amount // grain * grain or amount


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
    NodeDeclaredFeatures.name: _nothing,
}
