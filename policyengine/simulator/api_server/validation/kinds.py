"""What an object of each kind must be, beyond its metadata: the refusals clients of this server run into.

`VALIDATORS` names a function for each kind: what is wrong with the new object, given the one before (None: it is new).
"""

import re
from collections.abc import Callable, Iterator

from policyengine.simulator.api_server.field_errors import (
    CONFIG_KEY,
    duplicate,
    forbidden,
    invalid,
    qualified_name,
    required,
    subdomain,
    too_long,
    unsupported,
)
from policyengine.simulator.api_server.reading.selectors import from_object, matches_labels
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.store import Object, child, metadata, objects
from policyengine.simulator.api_server.validation.pods import EFFECTS, pod, pod_spec
from policyengine.simulator.api_server.validation.rules import (
    checked,
    each,
    field,
    immutable,
    needed,
    number,
    one_of,
    within,
)

Validator = Callable[[Object, Object | None], Iterator[Cause]]
RBAC = "rbac.authorization.k8s.io"
MAX_DATA = 1024 * 1024
EVENT_TEXT = 1024
KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{CONFIG_KEY}')"
)
PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    "used for validation is '[0-9]+%')"
)
SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def _sizes(data: Json) -> int:
    return sum(len(str(value).encode()) for value in data.values()) if isinstance(data, dict) else 0


def _key_faults(key: str) -> Iterator[str]:
    if len(key) > 253:
        yield "must be no more than 253 characters"
    if not re.fullmatch(CONFIG_KEY, key):
        yield KEY_TEXT
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def config_map(new: Object, old: Object | None) -> Iterator[Cause]:
    """Keys, size, immutability."""
    binary = child(new, "binaryData")
    for name in ("data", "binaryData"):
        for key in child(new, name):
            yield from (invalid(f"{name}[{key}]", key, why) for why in _key_faults(key))
            if name == "data" and key in binary:
                yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if _sizes(new.get("data")) + _sizes(binary) * 3 // 4 > MAX_DATA:
        # The real server's path is the empty one, which prints as `[]`.
        yield too_long("[]", MAX_DATA)
    yield from _immutable_data(new, old)


def _immutable_data(new: Object, old: Object | None) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        yield forbidden("immutable", why)
    yield from (forbidden(name, why) for name in ("data", "binaryData") if new.get(name) != old.get(name))


def secret(new: Object, old: Object | None) -> Iterator[Cause]:
    """Keys, size, type."""
    for key in child(new, "data"):
        if not re.fullmatch(CONFIG_KEY, key):
            yield invalid(f"data[{key}]", key, KEY_TEXT)
    if _sizes(new.get("data")) * 3 // 4 > MAX_DATA:
        yield too_long("data", MAX_DATA)
    if old is not None:
        yield from immutable(new.get("type"), old.get("type"), "type")
    yield from _immutable_data(new, old)


def node(new: Object, old: Object | None) -> Iterator[Cause]:
    """Taints and the fields a node keeps."""
    seen: set[tuple[Json, Json]] = set()
    for index, taint in enumerate(objects(child(new, "spec").get("taints"))):
        at = f"spec.taints[{index}]"
        key, effect = taint.get("key"), taint.get("effect")
        yield from (invalid(f"{at}.key", key, why) for why in qualified_name(str(key or "")))
        yield from (field("effect", one_of(*EFFECTS)) if effect else needed("effect"))(taint, at)
        if (key, effect) in seen:
            # The real server's path and spelling: the taint in its internal form.
            shown: Json = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": None}
            cause = duplicate(f"metadata.taints[{index}]", shown)
            why = "taints must be unique by key and effect pair"
            yield Cause(cause.kind, cause.field, f"{cause.detail}: {why}")
        seen.add((key, effect))
    if old is not None and child(old, "spec").get("podCIDR"):
        yield from immutable(child(new, "spec").get("podCIDR"), child(old, "spec").get("podCIDR"), "spec.podCIDR")


def lease(new: Object, old: Object | None) -> Iterator[Cause]:
    """Positive durations, transitions that only grow."""
    return checked(
        child(new, "spec"),
        "spec",
        field("leaseDurationSeconds", number("must be greater than 0", 1)),
        field("leaseTransitions", number("must be greater than or equal to 0", 0)),
    )


def priority_class(new: Object, old: Object | None) -> Iterator[Cause]:
    """Values below the system's, none that change."""
    name, value = str(metadata(new).get("name", "")), new.get("value")
    if name.startswith("system-"):
        if name not in SYSTEM_CLASSES:
            why = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden("metadata.name", why)
            return
    elif isinstance(value, int) and value > 1_000_000_000:
        yield forbidden("value", "maximum allowed value of a user defined priority is 1000000000")
        return
    if old is not None:
        if value != old.get("value"):
            yield forbidden("value", "may not be changed in an update.")
        yield from immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


def disruption_budget(new: Object, old: Object | None) -> Iterator[Cause]:
    """One bound, not two."""
    spec = child(new, "spec")
    bounds = {name: spec[name] for name in ("minAvailable", "maxUnavailable") if spec.get(name) is not None}
    if len(bounds) == 2:
        why = "minAvailable and maxUnavailable cannot be both set"
        yield invalid("spec", {k: v for k, v in spec.items() if k != "selector"}, why)
        return
    for name, bound in bounds.items():
        if isinstance(bound, str) and not re.fullmatch(r"[0-9]+%", bound):
            yield invalid(f"spec.{name}", bound, PERCENT_TEXT)
        yield from number("must be greater than or equal to 0", 0)(bound, f"spec.{name}")


def event(new: Object, old: Object | None) -> Iterator[Cause]:
    """The rules of new-style events (those with an eventTime); the old style is taken as it is."""
    place, home = metadata(new).get("namespace"), child(new, "involvedObject").get("namespace") or ""
    if old is not None:
        return
    if place != home if home else place not in ("default", "kube-system"):
        yield invalid("involvedObject.namespace", home, "does not match event.namespace")
    if not new.get("eventTime"):
        return
    for name, at, limit in (
        ("reportingComponent", "reportingController", 0),
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
    ):
        text = str(new.get(name) or "")
        if not text:
            yield required(at)
        elif limit and len(text) > limit:
            yield invalid(at, "", f"can have at most {limit} characters")
        if name == "reportingComponent":
            yield from (invalid(at, text, why) for why in qualified_name(text))
    if len(str(new.get("message") or "")) > EVENT_TEXT:
        yield invalid("message", "", f"can have at most {EVENT_TEXT} characters")
    if new.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", "has invalid value: " + str(new.get("type") or ""))


def workload(new: Object, old: Object | None) -> Iterator[Cause]:
    """A selector that matches the template, a valid template, a selector that stays."""
    spec = child(new, "spec")
    template, selector = child(spec, "template"), spec.get("selector")
    if isinstance(selector, dict):
        terms = from_object(selector)
        labels = {k: str(v) for k, v in child(template, "metadata", "labels").items()}
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid("spec.selector", selector, "empty selector is invalid for deployment")
        elif terms is not None and not matches_labels(terms, labels):
            held: Json = child(template, "metadata", "labels")
            yield invalid("spec.template.metadata.labels", held, "`selector` does not match template `labels`")
    elif selector is None:
        yield required("spec.selector")
    if old is not None:
        yield from immutable(selector, child(old, "spec").get("selector"), "spec.selector")
    yield from pod_spec(child(template, "spec"), "spec.template.spec")


def job(new: Object, old: Object | None) -> Iterator[Cause]:
    """A valid template that ends."""
    template = child(new, "spec", "template", "spec")
    yield from pod_spec(template, "spec.template.spec")
    if template.get("restartPolicy") == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def crd(new: Object, old: Object | None) -> Iterator[Cause]:
    """Names that fit, one stored version, schemas that are there."""
    spec, name = child(new, "spec"), str(metadata(new).get("name", ""))
    group, versions = str(spec.get("group") or ""), objects(spec.get("versions"))
    if name != f"{child(spec, 'names').get('plural') or ''}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    else:
        yield from (invalid("spec.group", group, why) for why in subdomain(group))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        shown: list[Json] = [dict(version) for version in versions]
        yield invalid("spec.versions", shown, "must have exactly one version marked as storage version")
    for index, version in enumerate(versions):
        if not isinstance(child(version, "schema").get("openAPIV3Schema"), dict):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
    protected = group.endswith((".k8s.io", ".kubernetes.io"))
    if protected and not child(new, "metadata", "annotations").get("api-approved.kubernetes.io"):
        why = (
            'protected groups must have approval annotation "api-approved.kubernetes.io", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield required("metadata.annotations[api-approved.kubernetes.io]", why)


def _role_rule(rule: Object, path: str, namespaced: bool) -> Iterator[Cause]:
    paths: Json = rule.get("nonResourceURLs")
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    elif paths and namespaced:
        yield invalid(f"{path}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")
    elif paths:
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", paths, why)
    else:
        yield from needed("apiGroups", "resource rules must supply at least one api group")(rule, path)
        yield from needed("resources", "resource rules must supply at least one resource")(rule, path)


def _role(namespaced: bool) -> Validator:
    return lambda new, old: each("rules", lambda rule, path: _role_rule(rule, path, namespaced))(new, "")


def _subject(subject: Object, path: str, home: bool) -> Iterator[Cause]:
    yield from needed("name")(subject, path)
    if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
        yield unsupported(f"{path}.kind", str(subject.get("kind") or ""), ("ServiceAccount", "User", "Group"))
    elif subject["kind"] == "ServiceAccount" and not home and not subject.get("namespace"):
        yield required(f"{path}.namespace")


def _binding(*kinds: str, home: bool) -> Validator:
    """A binding to a role of these kinds; `home`: accounts are of its own namespace unless they say otherwise."""

    def validator(new: Object, old: Object | None) -> Iterator[Cause]:
        reference = child(new, "roleRef")
        group, kind = str(reference.get("apiGroup") or ""), str(reference.get("kind") or "")
        yield from one_of(RBAC)(group, "roleRef.apiGroup")
        yield from one_of(*kinds)(kind, "roleRef.kind")
        yield from within("roleRef", needed("name"))(new, "")
        yield from each("subjects", lambda subject, path: _subject(subject, path, home))(new, "")
        if old is not None and old.get("roleRef") != reference:
            shown: Json = {"APIGroup": group, "Kind": reference.get("kind"), "Name": reference.get("name")}
            yield invalid("roleRef", shown, "cannot change roleRef")

    return validator


VALIDATORS: dict[str, Validator] = {
    "Pod": pod,
    "ConfigMap": config_map,
    "Secret": secret,
    "Node": node,
    "Lease": lease,
    "PriorityClass": priority_class,
    "PodDisruptionBudget": disruption_budget,
    "Event": event,
    "Deployment": workload,
    "ReplicaSet": workload,
    "StatefulSet": workload,
    "DaemonSet": workload,
    "Job": job,
    "Role": _role(namespaced=True),
    "ClusterRole": _role(namespaced=False),
    "RoleBinding": _binding("Role", "ClusterRole", home=True),
    "ClusterRoleBinding": _binding("ClusterRole", home=False),
    "CustomResourceDefinition": crd,
}
