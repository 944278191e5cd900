"""What the other kinds must be, beyond their metadata: the refusals clients of this server run into.

What roles and bindings must be.
"""

import re
from collections.abc import Callable

from policyengine.simulator.api_server.reading.selectors import from_object, matches_labels
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage.store import Object, child, metadata, objects
from policyengine.simulator.api_server.validation.metadata import (
    CONFIG_KEY,
    duplicate,
    forbidden,
    immutable,
    invalid,
    qualified_name,
    required,
    subdomain,
    too_long,
    unsupported,
)
from policyengine.simulator.api_server.validation.pods import EFFECTS, validate_pod_spec

MAX_DATA = 1024 * 1024
KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{CONFIG_KEY}')"
)
EVENT_TEXT = 1024


def _sizes(data: Json) -> int:
    return sum(len(str(value).encode()) for value in data.values()) if isinstance(data, dict) else 0


def _key_faults(key: str) -> list[str]:
    found = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not re.fullmatch(CONFIG_KEY, key):
        found.append(KEY_TEXT)
    if key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found


def config_map(new: Object, old: Object | None) -> list[Cause]:
    """Keys, size, immutability."""
    found: list[Cause] = []
    for name in ("data", "binaryData"):
        for key in child(new, name):
            found += [invalid(f"{name}[{key}]", key, why) for why in _key_faults(key)]
            if name == "data" and key in child(new, "binaryData"):
                found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    if _sizes(new.get("data")) + _sizes(new.get("binaryData")) * 3 // 4 > MAX_DATA:
        # The real server's path is the empty one, which prints as `[]`.
        found.append(too_long("[]", MAX_DATA))
    return found + _immutable_data(new, old)


def _immutable_data(new: Object, old: Object | None) -> list[Cause]:
    if old is None or not old.get("immutable"):
        return []
    found: list[Cause] = []
    if not new.get("immutable"):
        found.append(forbidden("immutable", "field is immutable when `immutable` is set"))
    changed = [name for name in ("data", "binaryData") if new.get(name) != old.get(name)]
    return found + [forbidden(name, "field is immutable when `immutable` is set") for name in changed]


def secret(new: Object, old: Object | None) -> list[Cause]:
    """Keys, size, type."""
    found = [invalid(f"data[{key}]", key, KEY_TEXT) for key in child(new, "data") if not re.fullmatch(CONFIG_KEY, key)]
    if _sizes(new.get("data")) * 3 // 4 > MAX_DATA:
        found.append(too_long("data", MAX_DATA))
    if old is not None:
        found += immutable(new.get("type"), old.get("type"), "type")
    return found + _immutable_data(new, old)


def node(new: Object, old: Object | None) -> list[Cause]:
    """Taints and the fields a node keeps."""
    found: list[Cause] = []
    seen: set[tuple[Json, Json]] = set()
    for index, taint in enumerate(objects(child(new, "spec").get("taints"))):
        at = f"spec.taints[{index}]"
        key, effect = taint.get("key"), taint.get("effect")
        found += [invalid(f"{at}.key", key, why) for why in qualified_name(str(key or ""))]
        if not effect:
            found.append(required(f"{at}.effect"))
        elif effect not in EFFECTS:
            found.append(unsupported(f"{at}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            # The real server's path and spelling: the taint in its internal form.
            shown: Json = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": None}
            cause = duplicate(f"metadata.taints[{index}]", shown)
            why = "taints must be unique by key and effect pair"
            found.append(Cause(cause.kind, cause.field, f"{cause.detail}: {why}"))
        seen.add((key, effect))
    if old is not None and child(old, "spec").get("podCIDR"):
        found += immutable(child(new, "spec").get("podCIDR"), child(old, "spec").get("podCIDR"), "spec.podCIDR")
    return found


def lease(new: Object, old: Object | None) -> list[Cause]:
    """Positive durations, transitions that only grow."""
    spec = child(new, "spec")
    found: list[Cause] = []
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if isinstance(seconds, int) and seconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if isinstance(transitions, int) and transitions < 0:
        found.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found


def priority_class(new: Object, old: Object | None) -> list[Cause]:
    """Values below the system's, none that change."""
    name, value = str(metadata(new).get("name", "")), new.get("value")
    if name.startswith("system-"):
        if name not in ("system-cluster-critical", "system-node-critical"):
            why = "priority class names with 'system-' prefix are reserved for system use only"
            return [forbidden("metadata.name", why)]
    elif isinstance(value, int) and value > 1_000_000_000:
        why = "maximum allowed value of a user defined priority is 1000000000"
        return [forbidden("value", why)]
    if old is None:
        return []
    found = [] if value == old.get("value") else [forbidden("value", "may not be changed in an update.")]
    return found + immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


def disruption_budget(new: Object, old: Object | None) -> list[Cause]:
    """One bound, not two."""
    spec = child(new, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        return [invalid("spec", {k: v for k, v in spec.items() if k != "selector"}, why)]
    return [f for name in ("minAvailable", "maxUnavailable") for f in _bound(spec.get(name), f"spec.{name}")]


def _bound(value: Json, at: str) -> list[Cause]:
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
        text = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')"
        )
        return [invalid(at, value, text)]
    if isinstance(value, int) and value < 0:
        return [invalid(at, value, "must be greater than or equal to 0")]
    return []


def event(new: Object, old: Object | None) -> list[Cause]:
    """The rules of new-style events (those with an eventTime); the old style is taken as it is."""
    meta, involved = metadata(new), child(new, "involvedObject")
    found: list[Cause] = []
    place, home = meta.get("namespace"), involved.get("namespace") or ""
    fits = place == home if home else place in ("default", "kube-system")
    if old is None and not fits:
        found.append(invalid("involvedObject.namespace", home, "does not match event.namespace"))
    if not new.get("eventTime") or old is not None:
        return found
    for name, at, limit in (
        ("reportingComponent", "reportingController", 0),
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
    ):
        text = str(new.get(name) or "")
        if not text:
            found.append(required(at))
        elif limit and len(text) > limit:
            found.append(invalid(at, "", f"can have at most {limit} characters"))
        if name == "reportingComponent":
            found += [invalid(at, text, why) for why in qualified_name(text)]
    if len(str(new.get("message") or "")) > EVENT_TEXT:
        found.append(invalid("message", "", f"can have at most {EVENT_TEXT} characters"))
    if new.get("type") not in ("Normal", "Warning"):
        found.append(invalid("type", "", "has invalid value: " + str(new.get("type") or "")))
    return found


def workload(new: Object, old: Object | None) -> list[Cause]:
    """A selector that matches the template, a valid template, a selector that stays."""
    spec = child(new, "spec")
    template = child(spec, "template")
    found: list[Cause] = []
    selector = spec.get("selector")
    if isinstance(selector, dict):
        terms = from_object(selector)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            found.append(invalid("spec.selector", selector, "empty selector is invalid for deployment"))
        elif terms is not None and not matches_labels(terms, _labels(template)):
            held: Json = child(template, "metadata", "labels")
            why = "`selector` does not match template `labels`"
            found.append(invalid("spec.template.metadata.labels", held, why))
    elif selector is None:
        found.append(required("spec.selector"))
    if old is not None:
        found += immutable(selector, child(old, "spec").get("selector"), "spec.selector")
    return found + validate_pod_spec(child(template, "spec"), "spec.template.spec")


def _labels(template: Object) -> dict[str, str]:
    return {k: str(v) for k, v in child(template, "metadata", "labels").items()}


def job(new: Object, old: Object | None) -> list[Cause]:
    """A valid template that ends."""
    template = child(new, "spec", "template", "spec")
    found = validate_pod_spec(template, "spec.template.spec")
    if template.get("restartPolicy") == "Always":
        found.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return found


def crd(new: Object, old: Object | None) -> list[Cause]:
    """Names that fit, one stored version, schemas that are there."""
    spec, name = child(new, "spec"), str(metadata(new).get("name", ""))
    group, names = str(spec.get("group") or ""), child(spec, "names")
    found: list[Cause] = []
    wanted = f"{names.get('plural') or ''}.{group}"
    if name != wanted:
        found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        found.append(required("spec.group"))
    else:
        found += [invalid("spec.group", group, why) for why in subdomain(group)]
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        found.append(unsupported("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced")))
    versions = objects(spec.get("versions"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        found.append(
            invalid(
                "spec.versions", [dict(v) for v in versions], "must have exactly one version marked as storage version"
            )
        )
    for index, version in enumerate(versions):
        if not isinstance(child(version, "schema").get("openAPIV3Schema"), dict):
            found.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
    protected = group.endswith((".k8s.io", ".kubernetes.io"))
    if protected and not child(new, "metadata", "annotations").get("api-approved.kubernetes.io"):
        why = 'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
        found.append(required("metadata.annotations[api-approved.kubernetes.io]", why))
    return found


SUBJECTS = ("ServiceAccount", "User", "Group")


def _rules(new: Object, namespaced: bool) -> list[Cause]:
    return [
        cause for at, rule in enumerate(objects(new.get("rules"))) for cause in _rule(rule, f"rules[{at}]", namespaced)
    ]


def _rule(rule: Object, path: str, namespaced: bool) -> list[Cause]:
    if not rule.get("verbs"):
        return [required(f"{path}.verbs", "verbs must contain at least one value")]
    paths: Json = rule.get("nonResourceURLs")
    if paths:
        if namespaced:
            return [invalid(f"{path}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")]
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            return [invalid(f"{path}.nonResourceURLs", paths, why)]
        return []
    found: list[Cause] = []
    if not rule.get("apiGroups"):
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def role(new: Object, old: Object | None) -> list[Cause]:
    """A Role."""
    return _rules(new, namespaced=True)


def cluster_role(new: Object, old: Object | None) -> list[Cause]:
    """A ClusterRole."""
    return _rules(new, namespaced=False)


def _binding(new: Object, old: Object | None, kinds: tuple[str, ...], home: bool) -> list[Cause]:
    reference = child(new, "roleRef")
    found: list[Cause] = []
    group = str(reference.get("apiGroup") or "")
    if group != "rbac.authorization.k8s.io":
        found.append(unsupported("roleRef.apiGroup", group, ("rbac.authorization.k8s.io",)))
    if reference.get("kind") not in kinds:
        found.append(unsupported("roleRef.kind", str(reference.get("kind") or ""), kinds))
    if not reference.get("name"):
        found.append(required("roleRef.name"))
    for at, subject in enumerate(objects(new.get("subjects"))):
        found += _subject(subject, f"subjects[{at}]", home)
    if old is not None and old.get("roleRef") != reference:
        shown: Json = {"APIGroup": group, "Kind": reference.get("kind"), "Name": reference.get("name")}
        found.append(invalid("roleRef", shown, "cannot change roleRef"))
    return found


def _subject(subject: Object, path: str, home: bool) -> list[Cause]:
    found: list[Cause] = [] if subject.get("name") else [required(f"{path}.name")]
    if subject.get("kind") not in SUBJECTS:
        return [*found, unsupported(f"{path}.kind", str(subject.get("kind") or ""), SUBJECTS)]
    if subject.get("kind") == "ServiceAccount" and not home and not subject.get("namespace"):
        found.append(required(f"{path}.namespace"))
    return found


def role_binding(new: Object, old: Object | None) -> list[Cause]:
    """A RoleBinding, which may name a Role or a ClusterRole."""
    return _binding(new, old, ("Role", "ClusterRole"), home=True)


def cluster_role_binding(new: Object, old: Object | None) -> list[Cause]:
    """A ClusterRoleBinding."""
    return _binding(new, old, ("ClusterRole",), home=False)


VALIDATORS: dict[str, Callable[[Object, Object | None], list[Cause]]] = {
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
    "Role": role,
    "ClusterRole": cluster_role,
    "RoleBinding": role_binding,
    "ClusterRoleBinding": cluster_role_binding,
    "CustomResourceDefinition": crd,
}
