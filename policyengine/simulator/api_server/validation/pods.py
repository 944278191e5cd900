"""What a Pod must be: the rules of core validation that schedulers, kubectl users and tests run into.

Container names and images, resources, ports, policies, tolerations, affinity operators, gates and spread
constraints; on update, only images, deadlines, added tolerations and removed gates may change.
"""

import re
from collections.abc import Iterator

from policyengine import quantity
from policyengine.simulator.api_server import field_errors as errors
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage import Object, child, objects
from policyengine.simulator.api_server.validation.field_rules import (
    checked,
    distinct,
    each,
    field,
    named,
    needed,
    number,
    one_of,
    within,
)

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MAX_INT32 = 2**31 - 1
STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
    "be set to 1 if it was previously negative)"
)
HARD, SOFT = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


# Containers


def _image(one: Object, at: str) -> Iterator[Cause]:
    image = str(one.get("image") or "")
    if not image:
        yield errors.required(f"{at}.image")
    elif image != image.strip():
        yield errors.invalid(f"{at}.image", image, "must not have leading or trailing whitespace")


def _container_name(one: Object, at: str) -> Iterator[Cause]:
    yield from (field("name", named(errors.dns_label)) if one.get("name") else needed("name"))(one, at)


def _port_numbers(port: Object, at: str) -> Iterator[Cause]:
    for name in ("containerPort", "hostPort"):
        value = port.get(name)
        if isinstance(value, int) and value and not 0 < value < 65536:
            yield errors.invalid(f"{at}.{name}", value, "must be between 1 and 65535, inclusive")


def _amount(resource: str, amount: Json, at: str) -> Iterator[Cause]:
    here = f"{at}[{resource}]"
    faults = errors.qualified_name(resource)
    known = resource in STANDARD_RESOURCES or resource.startswith(("hugepages-", "requests."))
    if not faults and "/" not in resource and not known:
        faults = ["must be a standard resource type or fully qualified", "must be a standard resource for containers"]
    yield from (errors.invalid(here, resource, why) for why in faults)
    if quantity.nanos(str(amount)) < 0:
        yield errors.invalid(here, amount, "must be greater than or equal to 0")


def _resources(resources: Object, at: str) -> Iterator[Cause]:
    limits, requests = child(resources, "limits"), child(resources, "requests")
    for resource, amount in limits.items():
        yield from _amount(resource, amount, f"{at}.limits")
    for resource, amount in requests.items():
        yield from _amount(resource, amount, f"{at}.requests")
        limit = limits.get(resource)
        if limit is None:
            if "/" in resource and "kubernetes.io/" not in resource:
                yield errors.required(f"{at}.limits", "Limit must be set for non overcommitable resources")
        elif quantity.nanos(str(amount)) > quantity.nanos(str(limit)):
            why = f"must be less than or equal to {resource} limit of {limit}"
            yield errors.invalid(f"{at}.requests", amount, why)


CONTAINER = (
    _container_name,
    _image,
    each(
        "ports",
        needed("containerPort"),
        _port_numbers,
        field("protocol", one_of("TCP", "UDP", "SCTP", shown=("SCTP", "TCP", "UDP"))),
    ),
    field("imagePullPolicy", one_of("Always", "IfNotPresent", "Never")),
    within("resources", _resources),
)


# Placement


def _integer(value: str, at: str) -> Iterator[Cause]:
    """What Gt and Lt compare a taint's value with."""
    if not value:
        yield errors.invalid(at, value, "must be non-empty")
    elif not re.fullmatch("0|-?[1-9][0-9]*", value):
        yield errors.invalid(at, value, "must be a valid decimal integer in canonical form")
    if not re.fullmatch("[+-]?[0-9]+", value):
        yield errors.invalid(at, value, f'strconv.ParseInt: parsing "{value}": invalid syntax')
    elif not -(2**63) <= int(value[:64]) < 2**63:
        yield errors.invalid(at, value, f'strconv.ParseInt: parsing "{value}": value out of range')


def _toleration(toleration: Object, at: str) -> Iterator[Cause]:
    key, operator = str(toleration.get("key") or ""), toleration.get("operator") or "Equal"
    effect, value = toleration.get("effect") or "", toleration.get("value")
    if key:
        yield from (errors.invalid(f"{at}.key", key, why) for why in errors.qualified_name(key))
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield errors.invalid(f"{at}.operator", operator, why)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield errors.invalid(f"{at}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator == "Exists" and value:
        yield errors.invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
    if operator in ("Gt", "Lt"):
        yield from _integer(str(value or ""), f"{at}.value")
    yield from one_of("Equal", "Exists", "Lt", "Gt", shown=("Equal", "Exists"))(operator, f"{at}.operator")


def _operator(need: Object, at: str) -> Iterator[Cause]:
    operator, values = need.get("operator"), need.get("values")
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
        yield errors.invalid(f"{at}.operator", operator, "not a valid selector operator")
    if operator in ("In", "NotIn") and not values:
        yield errors.required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield errors.forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    if operator in ("Gt", "Lt") and (not isinstance(values, list) or len(values) != 1):
        yield errors.required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")


def _node_name(spec: Object, at: str) -> Iterator[Cause]:
    yield from field("nodeName", named(errors.subdomain), optional=True)(spec, at)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield errors.forbidden(f"{at}.nodeName", "cannot be set until all schedulingGates have been cleared")


WEIGHT = field("weight", number("must be in the range 1-100", 1, 100, required=True))
NODE_TERM = each("matchExpressions", _operator, field("key", named(errors.qualified_name)))
POD_SPEC = (
    needed("containers"),
    distinct("containers", "name", *CONTAINER),
    distinct("initContainers", "name", *CONTAINER),
    field("restartPolicy", one_of("Always", "OnFailure", "Never")),
    lambda spec, at: iter(errors.validate_labels(spec.get("nodeSelector"), f"{at}.nodeSelector")),
    each("tolerations", _toleration, field("effect", one_of(*EFFECTS), optional=True)),
    within(
        "affinity.nodeAffinity",
        within(HARD, each("nodeSelectorTerms", NODE_TERM)),
        each(SOFT, WEIGHT, within("preference", NODE_TERM)),
    ),
    distinct(
        "schedulingGates",
        "",
        lambda gate, at: named(errors.qualified_name)(gate.get("name") or "", at),
    ),
    each(
        "topologySpreadConstraints",
        field("maxSkew", number("must be greater than zero", 1, required=True)),
        needed("topologyKey", "can not be empty"),
        field("whenUnsatisfiable", one_of("DoNotSchedule", "ScheduleAnyway")),
        field("minDomains", number("must be greater than zero", 1)),
    ),
    field("activeDeadlineSeconds", number(f"must be between 1 and {MAX_INT32}, inclusive", 1, MAX_INT32)),
    _node_name,
)


def pod_spec(spec: Object, at: str) -> Iterator[Cause]:
    """What is wrong with a PodSpec, in a pod or a template."""
    return checked(spec, at, *POD_SPEC)


def pod(new: Object, old: Object | None) -> Iterator[Cause]:
    """What is wrong with a pod, or with what of its spec an update changes."""
    yield from pod_spec(child(new, "spec"), "spec")
    if old is not None and child(new, "spec") != child(old, "spec"):
        yield from _changes(child(new, "spec"), child(old, "spec"))


def _changes(fresh: Object, before: Object) -> Iterator[Cause]:
    groups = {name: (objects(fresh.get(name)), objects(before.get(name))) for name in ("containers", "initContainers")}
    for name, (now, then) in groups.items():
        if len(now) != len(then):
            yield errors.forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _only_added_tolerations(fresh, before)
    yield from _only_removed_gates(fresh, before)
    allowed = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if before.get("schedulingGates"):
        allowed += ["nodeSelector", "affinity"]
    kept = {name: value for name, value in fresh.items() if name not in allowed}
    kept |= {name: before[name] for name in allowed if name in before}
    for name, (now, then) in groups.items():
        if now:
            kept[name] = [{**one, "image": held.get("image")} for one, held in zip(now, then, strict=True)]
    if kept != before:
        names = sorted(name for name in {*kept, *before} if kept.get(name) != before.get(name))
        why = f"pod updates may not change fields other than {UPDATABLE}\n changed: {', '.join(names)}"
        yield errors.forbidden("spec", why)


def _only_added_tolerations(fresh: Object, before: Object) -> Iterator[Cause]:
    def bare(spec: Object) -> set[tuple[str, ...]]:
        fields = ("key", "operator", "value", "effect")
        return {tuple(str(one.get(name) or "") for name in fields) for one in objects(spec.get("tolerations"))}

    if bare(before) - bare(fresh):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield errors.forbidden("spec.tolerations", why)


def _only_removed_gates(fresh: Object, before: Object) -> Iterator[Cause]:
    known = {str(gate.get("name")) for gate in objects(before.get("schedulingGates"))}
    names = [str(gate.get("name")) for gate in objects(fresh.get("schedulingGates"))]
    added = [name for name in names if name not in known]
    for at, name in enumerate(added):
        why = f"only deletion is allowed, but found new scheduling gate '{name}'"
        yield errors.forbidden(f"spec.schedulingGates[{at}].name", why)
