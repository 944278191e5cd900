"""What an object of each kind must be, beyond its metadata: the refusals clients of this server run into.

`VALIDATORS` names a function for each kind: what is wrong with the new object, given the one before (None: it is new).
"""

import re
from collections.abc import Callable, Iterator

from policyengine.simulator.api_server import field_errors as errors
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage import Object, child, metadata
from policyengine.simulator.api_server.validation.field_rules import (
    checked,
    each,
    field,
    needed,
    number,
    one_of,
    within,
)
from policyengine.simulator.api_server.validation.pods import pod

Validator = Callable[[Object, Object | None], Iterator[Cause]]
RBAC = "rbac.authorization.k8s.io"
MAX_DATA = 1024 * 1024
EVENT_TEXT = 1024
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


def config_map(new: Object, old: Object | None) -> Iterator[Cause]:
    """Keys, size, immutability."""
    binary = child(new, "binaryData")
    for name in ("data", "binaryData"):
        for key in child(new, name):
            yield from (errors.invalid(f"{name}[{key}]", key, why) for why in _key_faults(key))
            if name == "data" and key in binary:
                yield errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if _sizes(new.get("data")) + _sizes(binary) * 3 // 4 > MAX_DATA:
        # The real server's path is the empty one, which prints as `[]`.
        yield errors.too_long("[]", MAX_DATA)


def lease(new: Object, old: Object | None) -> Iterator[Cause]:
    """Positive durations, transitions that only grow."""
    return checked(
        child(new, "spec"),
        "spec",
        field("leaseDurationSeconds", number("must be greater than 0", 1)),
        field("leaseTransitions", number("must be greater than or equal to 0", 0)),
    )


def event(new: Object, old: Object | None) -> Iterator[Cause]:
    """The rules of new-style events (those with an eventTime); the old style is taken as it is."""
    place, home = metadata(new).get("namespace"), child(new, "involvedObject").get("namespace") or ""
    if old is not None:
        return
    if place != home if home else place not in ("default", "kube-system"):
        yield errors.invalid("involvedObject.namespace", home, "does not match event.namespace")
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
            yield errors.required(at)
        elif limit and len(text) > limit:
            yield errors.invalid(at, "", f"can have at most {limit} characters")
        if name == "reportingComponent":
            yield from (errors.invalid(at, text, why) for why in errors.qualified_name(text))
    if len(str(new.get("message") or "")) > EVENT_TEXT:
        yield errors.invalid("message", "", f"can have at most {EVENT_TEXT} characters")
    if new.get("type") not in ("Normal", "Warning"):
        yield errors.invalid("type", "", "has invalid value: " + str(new.get("type") or ""))


def _role_rule(rule: Object, path: str, namespaced: bool) -> Iterator[Cause]:
    paths: Json = rule.get("nonResourceURLs")
    if not rule.get("verbs"):
        yield errors.required(f"{path}.verbs", "verbs must contain at least one value")
    elif paths and namespaced:
        yield errors.invalid(f"{path}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")
    elif paths:
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield errors.invalid(f"{path}.nonResourceURLs", paths, why)
    else:
        yield from needed("apiGroups", "resource rules must supply at least one api group")(rule, path)
        yield from needed("resources", "resource rules must supply at least one resource")(rule, path)


def _role(namespaced: bool) -> Validator:
    return lambda new, old: each("rules", lambda rule, path: _role_rule(rule, path, namespaced))(new, "")


def _subject(subject: Object, path: str, home: bool) -> Iterator[Cause]:
    yield from needed("name")(subject, path)
    if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
        yield errors.unsupported(f"{path}.kind", str(subject.get("kind") or ""), ("ServiceAccount", "User", "Group"))
    elif subject["kind"] == "ServiceAccount" and not home and not subject.get("namespace"):
        yield errors.required(f"{path}.namespace")


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
            yield errors.invalid("roleRef", shown, "cannot change roleRef")

    return validator


VALIDATORS: dict[str, Validator] = {
    "Pod": pod,
    "ConfigMap": config_map,
    "Lease": lease,
    "Event": event,
    "Role": _role(namespaced=True),
    "ClusterRole": _role(namespaced=False),
    "RoleBinding": _binding("Role", "ClusterRole", home=True),
    "ClusterRoleBinding": _binding("ClusterRole", home=False),
}
