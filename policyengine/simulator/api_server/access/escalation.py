"""Nobody gives more than they hold: writing a role, or binding one, needs its rules or the verb `escalate` or `bind`.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
"""

from collections.abc import Iterator
from typing import NamedTuple

from policyengine.simulator.api_server.access.rbac import GROUP, MASTERS, Authorizer
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import Json, forbidden
from policyengine.simulator.api_server.storage.store import Object, child, metadata, objects

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
