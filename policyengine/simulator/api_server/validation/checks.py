"""What is wrong with a value, where `kinds/schemas/rules.txt` names a function for it: what no word of a rule says.

A check takes a value and its path, and yields what is wrong; the words behind its name are its arguments.
"""

import re
from collections.abc import Callable, Iterator

from policyengine import quantity
from policyengine.simulator.api_server import field_errors as errors
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage import Object, child

Checks = dict[str, Callable[..., Iterator[Cause]]]
STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})


# Pods


def _labels(value: Json, path: str) -> Iterator[Cause]:
    return iter(errors.validate_labels(value, path))


def _trimmed(value: Json, path: str) -> Iterator[Cause]:
    if isinstance(value, str) and value != value.strip():
        yield errors.invalid(path, value, "must not have leading or trailing whitespace")


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
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        yield errors.unsupported(f"{at}.operator", operator, ("Equal", "Exists"))


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


def _gate(gate: Object, path: str) -> Iterator[Cause]:
    name = gate.get("name") or ""
    yield from (errors.invalid(path, name, why) for why in errors.qualified_name(str(name)))


def _ungated(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield errors.forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")


# Other kinds

MAX_DATA = 1024 * 1024
KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{errors.CONFIG_KEY}')"
)


def _sizes(data: Json) -> int:
    return sum(len(str(value).encode()) for value in data.values()) if isinstance(data, dict) else 0


def _key_faults(key: str) -> Iterator[str]:
    if len(key) > 253:
        yield "must be no more than 253 characters"
    if not re.fullmatch(errors.CONFIG_KEY, key):
        yield KEY_TEXT
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def _config_map(new: Object, path: str) -> Iterator[Cause]:
    """Keys and size."""
    binary = child(new, "binaryData")
    for name in ("data", "binaryData"):
        for key in child(new, name):
            yield from (errors.invalid(f"{name}[{key}]", key, why) for why in _key_faults(key))
            if name == "data" and key in binary:
                yield errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if _sizes(new.get("data")) + _sizes(binary) * 3 // 4 > MAX_DATA:
        # The real server's path is the empty one, which prints as `[]`.
        yield errors.too_long("[]", MAX_DATA)


def _role_rule(rule: Object, path: str, scope: str) -> Iterator[Cause]:
    paths: Json = rule.get("nonResourceURLs")
    if not rule.get("verbs"):
        yield errors.required(f"{path}.verbs", "verbs must contain at least one value")
    elif paths and scope == "namespaced":
        yield errors.invalid(f"{path}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")
    elif paths:
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield errors.invalid(f"{path}.nonResourceURLs", paths, why)
    else:
        for name, what in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(name):
                yield errors.required(f"{path}.{name}", f"resource rules must supply at least one {what}")


def _subject(subject: Object, path: str, scope: str) -> Iterator[Cause]:
    """In a namespace, accounts are of that one unless they say otherwise."""
    kinds = ("ServiceAccount", "User", "Group")
    if not subject.get("name"):
        yield errors.required(f"{path}.name")
    if subject.get("kind") not in kinds:
        yield errors.unsupported(f"{path}.kind", str(subject.get("kind") or ""), kinds)
    elif subject["kind"] == "ServiceAccount" and scope == "cluster" and not subject.get("namespace"):
        yield errors.required(f"{path}.namespace")


CHECKS: Checks = {
    "labels": _labels,
    "trimmed": _trimmed,
    "resources": _resources,
    "toleration": _toleration,
    "operator": _operator,
    "gate": _gate,
    "ungated": _ungated,
    "config_map": _config_map,
    "role_rule": _role_rule,
    "subject": _subject,
}
"""By the name they go by in `rules.txt`."""
