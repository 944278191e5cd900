"""What a Pod must be: the rules of core validation that schedulers, kubectl users and tests run into.

Container names and images, resources, ports, policies, tolerations, affinity operators, gates and spread
constraints; on update, only images, deadlines, added tolerations and removed gates may change.
"""

from policyengine.simulator.api_server.decoding import scalars
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage.store import Object, child, objects
from policyengine.simulator.api_server.validation.metadata import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    qualified_name,
    required,
    subdomain,
    unsupported,
    validate_labels,
)

POLICIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("restartPolicy", ("Always", "OnFailure", "Never")),
    ("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
MAX_INT32 = 2**31 - 1
STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
    "be set to 1 if it was previously negative)"
)


def validate_pod(obj: Object) -> list[Cause]:
    """A whole pod."""
    return validate_pod_spec(child(obj, "spec"), "spec")


def validate_pod_spec(spec: Object, at: str) -> list[Cause]:
    """A PodSpec, in a pod or a template."""
    found = _containers(spec, at)
    for name, allowed in POLICIES:
        if spec.get(name) not in allowed:
            found.append(unsupported(f"{at}.{name}", spec.get(name), allowed))
    found += validate_labels(spec.get("nodeSelector"), f"{at}.nodeSelector")
    for index, toleration in enumerate(objects(spec.get("tolerations"))):
        found += _toleration(toleration, f"{at}.tolerations[{index}]")
    found += _affinity(child(spec, "affinity"), f"{at}.affinity")
    found += _gates(spec, f"{at}.schedulingGates")
    for index, constraint in enumerate(objects(spec.get("topologySpreadConstraints"))):
        found += _spread(constraint, f"{at}.topologySpreadConstraints[{index}]")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= MAX_INT32:
        found.append(invalid(f"{at}.activeDeadlineSeconds", deadline, f"must be between 1 and {MAX_INT32}, inclusive"))
    if spec.get("nodeName"):
        found += [invalid(f"{at}.nodeName", spec["nodeName"], why) for why in subdomain(str(spec["nodeName"]))]
    if spec.get("nodeName") and (spec.get("schedulingGates")):
        found.append(forbidden(f"{at}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def _containers(spec: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    names: set[Json] = set()
    volumes = {str(v.get("name")) for v in objects(spec.get("volumes"))}
    if not spec.get("containers"):
        found.append(required(f"{at}.containers"))
    for group in ("containers", "initContainers"):
        for index, one in enumerate(objects(spec.get(group))):
            here = f"{at}.{group}[{index}]"
            found += _container(one, here)
            name = one.get("name")
            if name in names:
                found.append(duplicate(f"{here}.name", name))
            names.add(name if isinstance(name, str) else "")
            for mount_at, mount in enumerate(objects(one.get("volumeMounts"))):
                if str(mount.get("name")) not in volumes:
                    detail = f'Not found: "{mount.get("name")}"'
                    found.append(Cause("FieldValueNotFound", f"{here}.volumeMounts[{mount_at}].name", detail))
    return found


def _container(one: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    name, image = str(one.get("name") or ""), str(one.get("image") or "")
    if not name:
        found.append(required(f"{at}.name"))
    else:
        found += [invalid(f"{at}.name", name, why) for why in dns_label(name)]
    if not image:
        found.append(required(f"{at}.image"))
    elif image != image.strip():
        found.append(invalid(f"{at}.image", image, "must not have leading or trailing whitespace"))
    for index, port in enumerate(objects(one.get("ports"))):
        found += _port(port, f"{at}.ports[{index}]")
    if one.get("imagePullPolicy") not in ("Always", "IfNotPresent", "Never"):
        allowed = ("Always", "IfNotPresent", "Never")
        found.append(unsupported(f"{at}.imagePullPolicy", one.get("imagePullPolicy"), allowed))
    return found + _resources(child(one, "resources"), f"{at}.resources")


def _port(port: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    number = port.get("containerPort")
    if not number:
        found.append(required(f"{at}.containerPort"))
    for name, value in (("containerPort", number), ("hostPort", port.get("hostPort"))):
        if isinstance(value, int) and value and not 0 < value < 65536:
            found.append(invalid(f"{at}.{name}", value, "must be between 1 and 65535, inclusive"))
    if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
        found.append(unsupported(f"{at}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP")))
    return found


def _resource_name(name: str, at: str) -> list[Cause]:
    found = [invalid(at, name, why) for why in qualified_name(name)]
    known = name in STANDARD_RESOURCES or name.startswith(("hugepages-", "requests."))
    if not found and "/" not in name and not known:
        found.append(invalid(at, name, "must be a standard resource type or fully qualified"))
        found.append(invalid(at, name, "must be a standard resource for containers"))
    return found


def _resources(resources: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    limits, requests = child(resources, "limits"), child(resources, "requests")
    for resource, amount in limits.items():
        found += _amount(resource, amount, f"{at}.limits")
    for resource, amount in requests.items():
        found += _amount(resource, amount, f"{at}.requests")
        limit = limits.get(resource)
        if limit is None:
            if "/" in resource and "kubernetes.io/" not in resource:
                found.append(required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
        elif scalars.quantity_value(str(amount)) > scalars.quantity_value(str(limit)):
            why = f"must be less than or equal to {resource} limit of {limit}"
            found.append(invalid(f"{at}.requests", amount, why))
    return found


def _amount(resource: str, amount: Json, at: str) -> list[Cause]:
    found = _resource_name(resource, f"{at}[{resource}]")
    if scalars.quantity_value(str(amount)) < 0:
        found.append(invalid(f"{at}[{resource}]", amount, "must be greater than or equal to 0"))
    return found


def _toleration(toleration: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    key, operator = str(toleration.get("key") or ""), toleration.get("operator") or "Equal"
    if key:
        found += [invalid(f"{at}.key", key, why) for why in qualified_name(key)]
    elif operator != "Exists":
        found.append(
            invalid(
                f"{at}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        )
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(f"{at}.effect", toleration.get("effect") or "", why))
    if operator == "Exists" and toleration.get("value"):
        why = "value must be empty when `operator` is 'Exists'"
        found.append(invalid(f"{at}.operator", toleration.get("value"), why))
    if operator not in TOLERATION_OPERATORS:
        found.append(unsupported(f"{at}.operator", operator, ("Equal", "Exists")))
    effect = toleration.get("effect")
    if effect and effect not in EFFECTS:
        found.append(unsupported(f"{at}.effect", effect, EFFECTS))
    return found


def _affinity(affinity: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    node = child(affinity, "nodeAffinity")
    hard = child(node, "requiredDuringSchedulingIgnoredDuringExecution")
    here = f"{at}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if hard and not hard.get("nodeSelectorTerms"):
        found.append(required(f"{here}.nodeSelectorTerms", "must have at least one node selector term"))
    for index, term in enumerate(objects(hard.get("nodeSelectorTerms"))):
        found += _node_term(term, f"{here}.nodeSelectorTerms[{index}]")
    soft_at = f"{at}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, soft in enumerate(objects(node.get("preferredDuringSchedulingIgnoredDuringExecution"))):
        found += _weight(soft, f"{soft_at}[{index}]")
        found += _node_term(child(soft, "preference"), f"{soft_at}[{index}].preference")
    for name in ("podAffinity", "podAntiAffinity"):
        found += _pod_affinity(child(affinity, name), f"{at}.{name}")
    return found


def _weight(soft: Object, at: str) -> list[Cause]:
    weight = soft.get("weight")
    if isinstance(weight, int) and 1 <= weight <= 100:
        return []
    return [invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def _node_term(term: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    for index, need in enumerate(objects(term.get("matchExpressions"))):
        here = f"{at}.matchExpressions[{index}]"
        operator, values = need.get("operator"), need.get("values")
        if operator not in NODE_OPERATORS:
            found.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        if operator in ("In", "NotIn") and not values:
            found.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        if operator in ("Exists", "DoesNotExist") and values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{here}.values", why))
        if operator in ("Gt", "Lt") and (not isinstance(values, list) or len(values) != 1):
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(f"{here}.values", why))
        found += [invalid(f"{here}.key", need.get("key"), w) for w in qualified_name(str(need.get("key")))]
    return found


def _pod_affinity(affinity: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    rows = [
        (term, f"{at}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
        for index, term in enumerate(objects(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")))
    ]
    for index, soft in enumerate(objects(affinity.get("preferredDuringSchedulingIgnoredDuringExecution"))):
        here = f"{at}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        found += _weight(soft, here)
        rows.append((child(soft, "podAffinityTerm"), f"{here}.podAffinityTerm"))
    for term, here in rows:
        if not term.get("topologyKey"):
            found.append(required(f"{here}.topologyKey", "can not be empty"))
        key = str(term.get("topologyKey") or "")
        found += [invalid(f"{here}.topologyKey", key, why) for why in qualified_name(key)]
    return found


def _gates(spec: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(objects(spec.get("schedulingGates"))):
        name = str(gate.get("name") or "")
        found += [invalid(f"{at}[{index}]", name, why) for why in qualified_name(name)]
        if name in seen:
            found.append(duplicate(f"{at}[{index}]", name))
        seen.add(name)
    return found


def _spread(constraint: Object, at: str) -> list[Cause]:
    found: list[Cause] = []
    skew, when = constraint.get("maxSkew"), constraint.get("whenUnsatisfiable")
    if not isinstance(skew, int) or skew <= 0:
        found.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
    if not constraint.get("topologyKey"):
        found.append(required(f"{at}.topologyKey", "can not be empty"))
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        found.append(unsupported(f"{at}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway")))
    minimum = constraint.get("minDomains")
    if isinstance(minimum, int) and minimum <= 0:
        found.append(invalid(f"{at}.minDomains", minimum, "must be greater than zero"))
    return found


def validate_pod_update(new: Object, old: Object) -> list[Cause]:
    """What of a pod's spec may change once it exists."""
    fresh, before = child(new, "spec"), child(old, "spec")
    found = validate_pod(new)
    if fresh == before:
        return found
    for group in ("containers", "initContainers"):
        if len(objects(fresh.get(group))) != len(objects(before.get(group))):
            return [*found, forbidden(f"spec.{group}", "pod updates may not add or remove containers")]
    found += _only_added_tolerations(fresh, before) + _only_removed_gates(fresh, before)
    munged = dict(fresh)
    for group in ("containers", "initContainers"):
        pairs = zip(objects(fresh.get(group)), objects(before.get(group)), strict=True)
        if fresh.get(group):
            munged[group] = [{**one, "image": held.get("image")} for one, held in pairs]
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _restore(munged, before, name)
    if before.get("schedulingGates"):
        for name in ("nodeSelector", "affinity"):
            _restore(munged, before, name)
    if munged != before:
        names = sorted(k for k in {*munged, *before} if munged.get(k) != before.get(k))
        why = f"pod updates may not change fields other than {UPDATABLE}\n changed: {', '.join(names)}"
        found.append(forbidden("spec", why))
    return found


def _restore(munged: Object, before: Object, name: str) -> None:
    munged.pop(name, None)
    if name in before:
        munged[name] = before[name]


def _only_added_tolerations(fresh: Object, before: Object) -> list[Cause]:
    now = objects(fresh.get("tolerations"))

    def kept(old: Object) -> bool:
        bare = {k: v for k, v in old.items() if k != "tolerationSeconds"}
        return any({k: v for k, v in t.items() if k != "tolerationSeconds"} == bare for t in now)

    if all(kept(old) for old in objects(before.get("tolerations"))):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _only_removed_gates(fresh: Object, before: Object) -> list[Cause]:
    known = [gate.get("name") for gate in objects(before.get("schedulingGates"))]
    added = [gate for gate in objects(fresh.get("schedulingGates")) if gate.get("name") not in known]
    why = "only deletion is allowed, but found new scheduling gate '{}'"
    return [
        forbidden(f"spec.schedulingGates[{at}].name", why.format(gate.get("name"))) for at, gate in enumerate(added)
    ]
