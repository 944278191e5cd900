"""Admission of writes: priorities of pods, rights on parts of a ResourceClaim's status, no escalation of rights.

- A pod's priority comes from its PriorityClass; only one class is the default (plugin/pkg/admission/priority). Without
  the plugin (`--disable-admission-plugins=Priority`) pods keep what they say.
- Beside `resourceclaims/status`, Kubernetes 1.36 asks for the same verb on `resourceclaims/binding`, in the whole
  cluster, where `allocation` or `reservedFor` change, and for `arbitrary-node:` and the verb on
  `resourceclaims/driver`, by the driver's name, where `devices` do (pkg/registry/resource/utils.go). An allocation may
  not change.
- Writing a role, or binding one, needs all its rules, or the verb `escalate` or `bind`
  (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping).

Each function is a `Guard` of the registry once it has its first argument.
"""

from collections.abc import Iterator
from dataclasses import replace

from policyengine.simulator.api_server.access.rbac import GROUP, MASTERS, Authorizer, covers
from policyengine.simulator.api_server.field_errors import forbidden as forbidden_field
from policyengine.simulator.api_server.field_errors import invalid as invalid_field
from policyengine.simulator.api_server.http_requests import RequestInfo, User
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import ApiError, Cause, Json, forbidden, invalid
from policyengine.simulator.api_server.storage import Object, Store, child, metadata, objects, texts

# Priority

DEFAULT_VALUE = 0
DEFAULT_POLICY = "PreemptLowerPriority"
CLASSES = ("scheduling.k8s.io", "priorityclasses")


def admit_priority(store: Store, kind: Kind, new: Object, old: Object | None, user: User, verb: str) -> None:
    """Fill in or keep a pod's priority; 403 for one that contradicts its class, and for a second default class."""
    if kind.kind == "Pod" and old is None:
        _give_priority(store, new)
    elif kind.kind == "Pod" and old is not None:
        # An update that leaves the admitted values out means them.
        held = child(old, "spec")
        for name in ("priority", "preemptionPolicy"):
            if child(new, "spec").get(name) is None and held.get(name) is not None:
                child(new, "spec")[name] = held[name]
    elif kind.kind == "PriorityClass" and new.get("globalDefault"):
        default = _default_class(store)
        if default is None or (old is not None and metadata(default)["name"] == metadata(old)["name"]):
            return
        why = f"PriorityClass {metadata(default)['name']} is already marked as default. Only one default can exist"
        raise forbidden(kind.plural, kind.group, str(metadata(new).get("name") or ""), why)


def _give_priority(store: Store, pod: Object) -> None:
    spec, name = child(pod, "spec"), str(metadata(pod).get("name") or "")
    class_name = str(spec.get("priorityClassName") or "")
    entry = store.collection(CLASSES).entries.get(class_name)
    chosen = (entry.object() if entry else None) if class_name else _default_class(store)
    if chosen is None and class_name:
        raise forbidden("pods", "", name, f"no PriorityClass with name {class_name} was found")
    value: Json = DEFAULT_VALUE
    policy: Json = DEFAULT_POLICY
    if chosen is not None:
        spec["priorityClassName"] = metadata(chosen)["name"]
        value, policy = chosen.get("value"), chosen.get("preemptionPolicy")
    admitted = [("priority", value, "integer value of priority")]
    if policy is not None:
        admitted.append(("preemptionPolicy", policy, "string value of PreemptionPolicy"))
    for field, computed, what in admitted:
        given = spec.get(field)
        if given is not None and given != computed:
            why = (
                f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed "
                f"{computed} from the given PriorityClass name"
            )
            raise forbidden("pods", "", name, why)
        spec[field] = computed


def _default_class(store: Store) -> Object | None:
    """The default class; of several, which only a race can make, the one of the lowest value."""
    classes = [entry.object() for entry in store.collection(CLASSES).entries.values()]
    defaults = [obj for obj in classes if obj.get("globalDefault")]
    return min(defaults, key=lambda obj: int(str(obj.get("value", 0))), default=None)


# The status of a ResourceClaim

CLAIM_GROUP = "resource.k8s.io"
DEVICE = ("driver", "pool", "device", "shareID")


def check_claim_status(
    authorizer: Authorizer, kind: Kind, obj: Object, old: Object | None, user: User, verb: str
) -> None:
    """Raise the 422 of a change that needs a right the user has not."""
    if kind.kind != "ResourceClaim" or old is None:
        return
    causes = [*_claim_causes(authorizer, kind, obj, old, user, verb), *_allocation_causes(obj, old)]
    if causes:
        raise invalid(kind.kind, CLAIM_GROUP, str(metadata(old)["name"]), causes)


def _claim_causes(
    authorizer: Authorizer, kind: Kind, obj: Object, old: Object, user: User, verb: str
) -> Iterator[Cause]:
    new, before = child(obj, "status"), child(old, "status")

    def lacking(asked: RequestInfo, field: str, changed: str, shown: str) -> Iterator[Cause]:
        try:
            authorizer.check(user, asked)
        except ApiError as error:
            needs = f'resource="resourceclaims/{asked.subresource}", verb="{shown}"'
            yield forbidden_field(field, f"changing {changed} requires {needs} permission: {error.message}")

    whole = RequestInfo(verb, "", CLAIM_GROUP, kind.version, "", kind.plural, "", "binding")
    if any(new.get(name) != before.get(name) for name in ("allocation", "reservedFor")):
        yield from lacking(whole, "status.allocation", "status.allocation or status.reservedFor", verb)
    if new.get("allocation") is None:
        return
    verb, space = f"arbitrary-node:{verb}", str(metadata(old).get("namespace") or "")
    for driver in sorted(_changed_drivers(new, before)):
        asked = replace(whole, verb=verb, namespace=space, name=driver, subresource="driver")
        yield from lacking(asked, "status.devices", "status.devices", f"[{verb}]")


def _allocation_causes(obj: Object, old: Object) -> Iterator[Cause]:
    """An allocation may go and may not change; only an allocated claim has users, and one that goes gets no new ones
    (ValidateResourceClaimStatusUpdate, pkg/apis/resource/validation)."""
    new, before = child(obj, "status"), child(old, "status")
    given, users = new.get("allocation"), objects(new.get("reservedFor"))
    if users and not given:
        yield forbidden_field("status.reservedFor", "may not be specified when `allocated` is not set")
    elif metadata(old).get("deletionTimestamp") and any(one not in objects(before.get("reservedFor")) for one in users):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden_field("status.reservedFor", why)
    if given and before.get("allocation") and given != before.get("allocation"):
        yield invalid_field("status.allocation", given, "field is immutable")


def _changed_drivers(new: Object, old: Object) -> set[str]:
    def by_device(status: Object) -> dict[tuple[Json, ...], Object]:
        return {tuple(one.get(name) for name in DEVICE): one for one in objects(status.get("devices"))}

    now, before = by_device(new), by_device(old)
    return {str(key[0]) for key in now.keys() | before.keys() if now.get(key) != before.get(key)}


# Escalation of rights


def check_escalation(
    authorizer: Authorizer, kind: Kind, obj: Object, old: Object | None, user: User, verb: str
) -> None:
    """Raise the 403 of giving more than one holds, by a role or a binding."""
    if kind.group != GROUP or MASTERS in user.groups:
        return
    meta = metadata(obj)
    namespace, name = str(meta.get("namespace") or ""), str(meta.get("name") or "")
    if "Binding" in kind.kind:
        reference = child(obj, "roleRef")
        plural = "roles" if reference.get("kind") == "Role" else "clusterroles"
        asked = RequestInfo("bind", "", GROUP, kind.version, namespace, plural, str(reference.get("name")))
        wanted = list(authorizer.bound(obj, namespace).rules)
    elif old is not None and old.get("rules") == obj.get("rules"):
        return
    else:
        asked = RequestInfo("escalate", "", GROUP, kind.version, namespace, kind.plural, name)
        wanted = objects(obj.get("rules"))
    if authorizer.decide(user, asked).allowed:
        return
    held = list(authorizer.rules(user, namespace))
    missing = [one for rule in wanted for one in _rights(rule) if not any(covers(has, one) for has in held)]
    if not missing:
        return
    groups = " ".join(f'"{group}"' for group in user.groups)
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
        f"{_described(missing)}"
    )
    unresolved = authorizer.missing(user, namespace)
    if unresolved:
        why += f"; resolution errors: [{' '.join(unresolved)}]"
    raise forbidden(kind.plural, GROUP, name, why)


def _rights(rule: Object) -> Iterator[RequestInfo]:
    """A rule taken apart: one verb on one resource (and name), or on one path."""
    for verb in texts(rule.get("verbs")):
        for path in texts(rule.get("nonResourceURLs")):
            yield RequestInfo(verb, path)
        for group in texts(rule.get("apiGroups")):
            for whole in texts(rule.get("resources")):
                resource, _, sub = whole.partition("/")
                for name in texts(rule.get("resourceNames")) or [""]:
                    yield RequestInfo(verb, "", group, resource=resource, name=name, subresource=sub)


def _described(missing: list[RequestInfo]) -> str:
    """Rights one lacks, those on one resource together, a line each, sorted."""
    together: dict[RequestInfo, list[str]] = {}
    for right in missing:
        together.setdefault(replace(right, verb=""), []).append(right.verb)
    return "\n".join(sorted(_line(right, verbs) for right, verbs in together.items()))


def _line(right: RequestInfo, verbs: list[str]) -> str:
    said = " ".join(f'"{verb}"' for verb in dict.fromkeys(verbs))
    if right.resource:
        parts = [f'APIGroups:["{right.group}"]', f'Resources:["{right.full_resource}"]']
    else:
        parts = [f'NonResourceURLs:["{right.path}"]']
    if right.name:
        parts.append(f'ResourceNames:["{right.name}"]')
    return "{" + ", ".join([*parts, f"Verbs:[{said}]"]) + "}"
