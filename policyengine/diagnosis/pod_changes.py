"""The same pod with a little less asked of the cluster: what `explain` tries out. Pure; no pod is ever written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from policyengine import quantity
from policyengine.cluster.node_objects import Taint
from policyengine.cluster.objects import SelectorRequirement
from policyengine.cluster.pod_objects import Affinity, Container, PodSpec, Resources, Toleration
from policyengine.cluster.pod_shape import shape_of
from policyengine.cluster.requests import CPU, EPHEMERAL_STORAGE, MEMORY

_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"


def amount_text(resource: str, amount: int) -> str:
    """An amount in the scheduler's unit of the resource, as one writes it: `250m`, `2Gi`, `3`."""
    if resource == CPU:
        return quantity.format_cpu(amount)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return quantity.format_bytes(amount)
    return quantity.format_count(amount)


def requesting(spec: PodSpec, resource: str, target: int) -> PodSpec | None:
    """The spec with at most `target` of the resource requested, taken from the largest requests first; None where
    that cannot be had (overhead alone is more)."""
    if spec.resources is not None and resource in spec.resources.requests:
        overhead = _read(spec.overhead, resource)
        lower = _resources(spec.resources, resource, target - overhead) if target > overhead else None
        return None if lower is None else replace(spec, resources=lower)
    for _ in range(len(spec.containers) + len(spec.init_containers) + 1):
        excess = shape_of(spec).requests.get(resource) - target
        if excess <= 0:
            return spec
        reduced = _largest_reduced(spec, resource, excess)
        if reduced is None:
            return None
        spec = reduced
    return None


def _largest_reduced(spec: PodSpec, resource: str, excess: int) -> PodSpec | None:
    """With the excess taken off the one container whose reduction helps most."""
    best: tuple[int, PodSpec] | None = None
    for name in ("containers", "init_containers"):
        containers: tuple[Container, ...] = getattr(spec, name)
        for place, container in enumerate(containers):
            held = _read(container.resources.requests, resource)
            if held == 0:
                continue
            lower = replace(container, resources=_resources(container.resources, resource, max(held - excess, 0)))
            listed: dict[str, Any] = {name: (*containers[:place], lower, *containers[place + 1 :])}
            changed = replace(spec, **listed)
            left = shape_of(changed).requests.get(resource)
            if best is None or left < best[0]:
                best = (left, changed)
    if best is None or best[0] >= shape_of(spec).requests.get(resource):
        return None
    return best[1]


def _read(quantities: Mapping[str, str | int | float], resource: str) -> int:
    try:
        text = str(quantities.get(resource, "0"))
        return quantity.milli_value(text) if resource == CPU else quantity.value(text)
    except quantity.QuantityError:
        return 0


def _resources(resources: Resources, resource: str, amount: int) -> Resources:
    return replace(resources, requests=dict(resources.requests) | {resource: amount_text(resource, amount)})


def tolerating(spec: PodSpec, taint: Taint) -> PodSpec:
    """The spec with a toleration of exactly this taint."""
    toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return replace(spec, tolerations=(*spec.tolerations, toleration))


def without_selector_label(spec: PodSpec, key: str) -> PodSpec:
    """The spec without one key of its nodeSelector."""
    return replace(spec, node_selector={name: value for name, value in spec.node_selector.items() if name != key})


def required_node_expressions(spec: PodSpec) -> list[SelectorRequirement]:
    """The distinct label requirements of required node affinity, in order."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    selector = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = selector.node_selector_terms if selector else ()
    return list(dict.fromkeys(expression for term in terms for expression in term.match_expressions))


def without_node_expression(spec: PodSpec, expression: SelectorRequirement) -> PodSpec:
    """The spec without a label requirement in any required term; without required node affinity where nothing else
    was in it (an empty term would match no node)."""
    affinity = spec.affinity
    node = affinity.node_affinity if affinity else None
    selector = node.required_during_scheduling_ignored_during_execution if node else None
    if affinity is None or node is None or selector is None:
        return spec
    terms = tuple(
        replace(term, match_expressions=tuple(one for one in term.match_expressions if one != expression))
        for term in selector.node_selector_terms
    )
    emptied = any(not term.match_expressions and not term.match_fields for term in terms)
    left = None if emptied else replace(selector, node_selector_terms=terms)
    lower = replace(node, required_during_scheduling_ignored_during_execution=left)
    return replace(spec, affinity=replace(affinity, node_affinity=lower))


def without_pod_term(spec: PodSpec, anti: bool, place: int) -> PodSpec:
    """The spec without one required term of pod affinity, or anti-affinity."""
    affinity = spec.affinity or Affinity()
    field = "pod_anti_affinity" if anti else "pod_affinity"
    side = getattr(affinity, field)
    terms = getattr(side, _REQUIRED)
    kept: dict[str, Any] = {_REQUIRED: (*terms[:place], *terms[place + 1 :])}
    lower: dict[str, Any] = {field: replace(side, **kept)}
    return replace(spec, affinity=replace(affinity, **lower))


def with_spread(spec: PodSpec, place: int, **changes: object) -> PodSpec:
    """The spec with fields of one topology spread constraint replaced."""
    constraints = list(spec.topology_spread_constraints)
    constraints[place] = replace(constraints[place], **changes)
    return replace(spec, topology_spread_constraints=tuple(constraints))


def without_host_port(spec: PodSpec, port: int) -> PodSpec:
    """The spec with this port on no host any more."""
    return _each_container(
        spec,
        lambda container: replace(
            container,
            ports=tuple(replace(one, host_port=0) if one.host_port == port else one for one in container.ports),
        ),
    )


def _each_container(spec: PodSpec, change: Callable[[Container], Container]) -> PodSpec:
    return replace(
        spec,
        containers=tuple(map(change, spec.containers)),
        init_containers=tuple(map(change, spec.init_containers)),
    )
