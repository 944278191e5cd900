"""A pod's spec with a little less asked of the cluster. No spec is ever written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from policyengine import quantity
from policyengine.cluster.node_objects import NodeSelector
from policyengine.cluster.objects import Resources, SelectorRequirement
from policyengine.cluster.pod_objects import Container, PodSpec
from policyengine.cluster.pod_shape import shape_of
from policyengine.plugins.selectors.node_selector import required_affinity

T = TypeVar("T", bound=Struct)
REQUIRED: Final = "required_during_scheduling_ignored_during_execution"


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
        return quantity.amount(resource, quantities.get(resource, "0"))
    except quantity.QuantityError:
        return 0


def _resources(resources: Resources, resource: str, amount: int) -> Resources:
    return replace(resources, requests=dict(resources.requests) | {resource: quantity.format_amount(resource, amount)})


def replaced(item: T, path: Sequence[str], change: Callable[[Any], object]) -> T:
    """The struct with what a path of attributes leads to changed; `item` itself stays as it is."""
    name, *further = path
    held = getattr(item, name)
    changes: dict[str, Any] = {name: replaced(held, further, change) if further else change(held)}
    return replace(item, **changes)


def with_instead(spec: PodSpec, path: Sequence[str], item: object, *items: object) -> PodSpec:
    """The spec with others in place of an item of a list, or none; the spec itself where there is no such item."""
    held: Any = spec
    for name in path:
        held = getattr(held, name, None)
    if held is None or item not in held:
        return spec
    place = held.index(item)
    return replaced(spec, path, lambda listed: (*listed[:place], *items, *listed[place + 1 :]))


def required_node_expressions(spec: PodSpec) -> list[SelectorRequirement]:
    """The distinct label requirements of required node affinity, in order."""
    selector = required_affinity(spec)
    terms = selector.node_selector_terms if selector else ()
    return list(dict.fromkeys(expression for term in terms for expression in term.match_expressions))


def without_node_expression(spec: PodSpec, expression: SelectorRequirement) -> PodSpec:
    """The spec without a label requirement in any term of its required node affinity; without that affinity where
    nothing else was in a term (an empty one would match no node)."""
    if expression not in required_node_expressions(spec):
        return spec

    def without(selector: NodeSelector) -> NodeSelector | None:
        terms = tuple(
            replace(term, match_expressions=tuple(one for one in term.match_expressions if one != expression))
            for term in selector.node_selector_terms
        )
        emptied = any(not term.match_expressions and not term.match_fields for term in terms)
        return None if emptied else replace(selector, node_selector_terms=terms)

    return replaced(spec, ("affinity", "node_affinity", REQUIRED), without)


def without_host_port(spec: PodSpec, port: int) -> PodSpec:
    """The spec with this port on no host any more."""

    def without(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(one, ports=tuple(replace(of, host_port=0) if of.host_port == port else of for of in one.ports))
            for one in containers
        )

    return replace(spec, containers=without(spec.containers), init_containers=without(spec.init_containers))
