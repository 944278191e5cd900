"""Admission of writes: priorities of pods, rights on parts of a ResourceClaim's status, no escalation of rights.

- A pod's priority comes from its PriorityClass; only one class is the default (plugin/pkg/admission/priority). Without
  the plugin (`--disable-admission-plugins=Priority`) pods keep what they say.
- Beside `resourceclaims/status`, Kubernetes 1.36 asks for the same verb on `resourceclaims/binding`, in the whole
  cluster, where `allocation` or `reservedFor` change, and for `arbitrary-node:` and the verb on
  `resourceclaims/driver`, by the driver's name, where `devices` do (pkg/registry/resource/utils.go).
- Writing a role, or binding one, needs all its rules, or the verb `escalate` or `bind`
  (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping).
"""

from collections.abc import Iterator
from typing import NamedTuple

from policyengine.simulator.api_server.access.rbac import GROUP, MASTERS, Authorizer
from policyengine.simulator.api_server.field_errors import forbidden as forbidden_field
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import ApiError, Cause, Json, forbidden, invalid
from policyengine.simulator.api_server.store import Object, Store, child, metadata, objects

DEFAULT_VALUE = 0
DEFAULT_POLICY = "PreemptLowerPriority"


class PriorityAdmission:
    """Looks at pods and PriorityClasses before they are written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, kind: Kind, new: Object, old: Object | None, user: User, verb: str) -> None:
        """Fill in or keep a pod's priority; 403 for one that contradicts its class, and for a second default class."""
        if kind.kind == "Pod":
            self._create(new) if old is None else _keep(child(new, "spec"), child(old, "spec"))
        elif kind.kind == "PriorityClass" and new.get("globalDefault"):
            self._only_default(kind, new, old)

    def _create(self, pod: Object) -> None:
        spec, name = child(pod, "spec"), str(metadata(pod).get("name") or "")
        value, policy = self._of_class(spec, name)
        given = spec.get("priority")
        if given is not None and given != value:
            raise _contradicted(name, "integer value of priority", given, value)
        spec["priority"] = value
        if policy is None:
            return
        wanted = spec.get("preemptionPolicy")
        if wanted is not None and wanted != policy:
            raise _contradicted(name, "string value of PreemptionPolicy", wanted, policy)
        spec["preemptionPolicy"] = policy

    def _of_class(self, spec: Object, pod: str) -> tuple[Json, Json]:
        name = str(spec.get("priorityClassName") or "")
        chosen = self._class(name) if name else self._default()
        if chosen is None:
            if name:
                raise forbidden("pods", "", pod, f"no PriorityClass with name {name} was found")
            return DEFAULT_VALUE, DEFAULT_POLICY
        spec["priorityClassName"] = metadata(chosen)["name"]
        return chosen.get("value"), chosen.get("preemptionPolicy")

    def _class(self, name: str) -> Object | None:
        found = self._store.collection(("scheduling.k8s.io", "priorityclasses")).get(name)
        return found.object() if found else None

    def _default(self) -> Object | None:
        """The default class; of several, which only a race can make, the one of the lowest value."""
        entries = self._store.collection(("scheduling.k8s.io", "priorityclasses")).entries.values()
        found = [obj for obj in (entry.object() for entry in entries) if obj.get("globalDefault")]
        return min(found, key=lambda obj: int(str(obj.get("value", 0))), default=None)

    def _only_default(self, kind: Kind, new: Object, old: Object | None) -> None:
        held = self._default()
        if held is None or (old is not None and metadata(held)["name"] == metadata(old)["name"]):
            return
        why = f"PriorityClass {metadata(held)['name']} is already marked as default. Only one default can exist"
        raise forbidden(kind.plural, kind.group, str(metadata(new).get("name") or ""), why)


def _keep(new: Object, old: Object) -> None:
    """An update that leaves the admitted values out means them."""
    for name in ("priority", "preemptionPolicy"):
        if new.get(name) is None and old.get(name) is not None:
            new[name] = old[name]


def _contradicted(pod: str, what: str, given: Json, computed: Json) -> ApiError:
    why = (
        f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed {computed} "
        "from the given PriorityClass name"
    )
    return forbidden("pods", "", pod, why)


CLAIM_GROUP = "resource.k8s.io"
DEVICE = ("driver", "pool", "device", "shareID")


class ClaimStatusGuard:
    """Checks every update of a ResourceClaim."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, kind: Kind, obj: Object, old: Object | None, user: User, verb: str) -> None:
        """Raise the 422 of a change that needs a right the user has not."""
        if kind.kind != "ResourceClaim" or old is None:
            return
        causes = list(self._causes(kind, child(obj, "status"), child(old, "status"), metadata(old), user, verb))
        if causes:
            raise invalid(kind.kind, CLAIM_GROUP, str(metadata(old)["name"]), causes)

    def _causes(self, kind: Kind, new: Object, old: Object, meta: Object, user: User, verb: str) -> Iterator[Cause]:
        if any(new.get(name) != old.get(name) for name in ("allocation", "reservedFor")):
            why = self._lacks(user, RequestInfo(verb, "", CLAIM_GROUP, kind.version, "", kind.plural, "", "binding"))
            what = "changing status.allocation or status.reservedFor requires"
            if why:
                yield forbidden_field(
                    "status.allocation", f'{what} resource="resourceclaims/binding", verb="{verb}" {why}'
                )
        if new.get("allocation") is None:
            return
        verb = f"arbitrary-node:{verb}"
        for driver in sorted(_changed_drivers(new, old)):
            space = str(meta.get("namespace") or "")
            why = self._lacks(
                user, RequestInfo(verb, "", CLAIM_GROUP, kind.version, space, kind.plural, driver, "driver")
            )
            if why:
                what = "changing status.devices requires"
                yield forbidden_field(
                    "status.devices", f'{what} resource="resourceclaims/driver", verb="[{verb}]" {why}'
                )

    def _lacks(self, user: User, asked: RequestInfo) -> str:
        try:
            self._authorizer.check(user, asked)
        except ApiError as error:
            return f"permission: {error.message}"
        return ""


def _changed_drivers(new: Object, old: Object) -> set[str]:
    def by_device(status: Object) -> dict[tuple[Json, ...], Object]:
        return {tuple(one.get(name) for name in DEVICE): one for one in objects(status.get("devices"))}

    now, before = by_device(new), by_device(old)
    return {str(key[0]) for key in now.keys() | before.keys() if now.get(key) != before.get(key)}


ROLES, BINDINGS = ("Role", "ClusterRole"), ("RoleBinding", "ClusterRoleBinding")


class Right(NamedTuple):
    """One verb on one resource (and name), or on one path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    path: str = ""


def texts(rule: Object, name: str) -> list[str]:
    """A rule's list of strings."""
    value = rule.get(name)
    return [str(item) for item in value] if isinstance(value, list) else []


def rights(rule: Object) -> Iterator[Right]:
    """A rule taken apart."""
    for verb in texts(rule, "verbs"):
        for path in texts(rule, "nonResourceURLs"):
            yield Right(verb, path=path)
        for group in texts(rule, "apiGroups"):
            for resource in texts(rule, "resources"):
                for name in texts(rule, "resourceNames") or [""]:
                    yield Right(verb, group, resource, name)


def holds(rule: Object, right: Right) -> bool:
    """Whether a rule one has includes a right."""

    def among(name: str, value: str) -> bool:
        held = texts(rule, name)
        return "*" in held or value in held

    if not among("verbs", right.verb):
        return False
    if right.path:
        patterns = texts(rule, "nonResourceURLs")
        return any(right.path == p or (p.endswith("*") and right.path.startswith(p[:-1])) for p in patterns)
    subresource = right.resource.partition("/")[2]
    whole = among("resources", right.resource) or (subresource != "" and f"*/{subresource}" in texts(rule, "resources"))
    named = not texts(rule, "resourceNames") or right.name in texts(rule, "resourceNames")
    return among("apiGroups", right.group) and whole and named


def described(missing: list[Right]) -> str:
    """Rights one lacks, those on one resource together, a line each, sorted."""
    together: dict[Right, list[str]] = {}
    for right in missing:
        together.setdefault(right._replace(verb=""), []).append(right.verb)
    return "\n".join(sorted(_line(right, verbs) for right, verbs in together.items()))


def _line(right: Right, verbs: list[str]) -> str:
    said = " ".join(f'"{verb}"' for verb in dict.fromkeys(verbs))
    parts = [] if right.path else [f'APIGroups:["{right.group}"]', f'Resources:["{right.resource}"]']
    if right.path:
        parts.append(f'NonResourceURLs:["{right.path}"]')
    if right.name:
        parts.append(f'ResourceNames:["{right.name}"]')
    return "{" + ", ".join([*parts, f"Verbs:[{said}]"]) + "}"


class EscalationGuard:
    """Checks every write of a role or binding."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, kind: Kind, obj: Object, old: Object | None, user: User, verb: str) -> None:
        """Raise the 403 of giving more than one holds."""
        if kind.group != GROUP or MASTERS in user.groups:
            return
        meta = metadata(obj)
        namespace, name = str(meta.get("namespace") or ""), str(meta.get("name") or "")
        if kind.kind in ROLES:
            if old is not None and old.get("rules") == obj.get("rules"):
                return
            asked = RequestInfo("escalate", "", GROUP, kind.version, namespace, kind.plural, name)
            wanted = objects(obj.get("rules"))
        elif kind.kind in BINDINGS:
            reference = child(obj, "roleRef")
            plural = "roles" if reference.get("kind") == "Role" else "clusterroles"
            asked = RequestInfo("bind", "", GROUP, kind.version, namespace, plural, str(reference.get("name")))
            wanted = list(self._authorizer.bound(obj, namespace).rules)
        else:
            return
        if not self._authorizer.decide(user, asked).allowed:
            self._compare(kind, name, namespace, wanted, user)

    def _compare(self, kind: Kind, name: str, namespace: str, wanted: list[Object], user: User) -> None:
        held = list(self._authorizer.rules(user, namespace))
        missing = [r for rule in wanted for r in rights(rule) if not any(holds(h, r) for h in held)]
        if not missing:
            return
        groups = " ".join(f'"{group}"' for group in user.groups)
        why = (
            f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
            f"{described(missing)}"
        )
        unresolved: list[Json] = [*self._authorizer.missing(user, namespace)]
        if unresolved:
            why += f"; resolution errors: [{' '.join(str(one) for one in unresolved)}]"
        raise forbidden(kind.plural, GROUP, name, why)
