"""Who may do what: Roles, ClusterRoles and their bindings, read from what is stored, as RBAC reads them.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/. The group `system:masters` may do everything. The
texts of refusals are the real server's.
"""

from collections.abc import Iterator

from policyengine.simulator.api_server.defaults import child, objects
from policyengine.simulator.api_server.requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import ApiError, Json, forbidden
from policyengine.simulator.api_server.storage import Object, Store

GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"


def _has(value: Json, *wanted: str) -> bool:
    return isinstance(value, list) and any(item in value for item in (*wanted, "*"))


def covers(rule: Object, info: RequestInfo) -> bool:
    """Whether a PolicyRule allows a request."""
    if not _has(rule.get("verbs"), info.verb):
        return False
    if not info.is_resource:
        return _covers_path(rule.get("nonResourceURLs"), info.path)
    if not _has(rule.get("apiGroups"), info.group):
        return False
    full = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    wanted = (full, f"*/{info.subresource}") if info.subresource else (full,)
    if not _has(rule.get("resources"), *wanted):
        return False
    names = rule.get("resourceNames")
    return not names or (isinstance(names, list) and info.name in names)


def _covers_path(patterns: Json, path: str) -> bool:
    for pattern in patterns if isinstance(patterns, list) else []:
        text = str(pattern)
        if text == path or (text.endswith("*") and path.startswith(text[:-1])):
            return True
    return False


def applies(subject: Object, user: User, namespace: str) -> bool:
    """Whether a binding's subject means the user."""
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return name == user.name
    if kind == "Group":
        return name in user.groups
    home = subject.get("namespace") or namespace
    return kind == "ServiceAccount" and user.name == f"system:serviceaccount:{home}:{name}"


class Authorizer:
    """Answers whether a user may do something, from the roles stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revision = -1
        self._cluster: list[tuple[list[Object], list[Object]]] = []
        self._namespaced: dict[str, list[tuple[list[Object], list[Object]]]] = {}

    def refresh(self) -> None:
        """Read roles and bindings again; called after a write to one of them."""
        self._revision = -1

    def _load(self) -> None:
        if self._revision >= 0:
            return
        self._revision = self._store.revision
        self._cluster = []
        for entry in self._store.collection((GROUP, "clusterrolebindings")).entries.values():
            self._cluster.append(self._binding(entry.object(), ""))
        self._namespaced = {}
        for entry in self._store.collection((GROUP, "rolebindings")).entries.values():
            rows = self._namespaced.setdefault(entry.namespace, [])
            rows.append(self._binding(entry.object(), entry.namespace))

    def _binding(self, binding: Object, namespace: str) -> tuple[list[Object], list[Object]]:
        reference = child(binding, "roleRef")
        kind, name = reference.get("kind"), str(reference.get("name"))
        plural, key = ("roles", f"{namespace}/{name}") if kind == "Role" else ("clusterroles", name)
        found = self._store.collection((GROUP, plural)).get(key)
        return objects(binding.get("subjects")), objects(found.object().get("rules")) if found else []

    def rules(self, user: User, namespace: str) -> Iterator[Object]:
        """All rules that hold for a user in a namespace."""
        self._load()
        for subjects, rules in (*self._cluster, *self._namespaced.get(namespace, ())):
            if any(applies(subject, user, namespace) for subject in subjects):
                yield from rules

    def allows(self, user: User, info: RequestInfo) -> bool:
        """Whether `user` may do what `info` says."""
        if MASTERS in user.groups:
            return True
        return any(covers(rule, info) for rule in self.rules(user, info.namespace))

    def check(self, user: User, info: RequestInfo) -> None:
        """Raise the 403 of a request that is not allowed."""
        if not self.allows(user, info):
            raise refusal(user, info)


def refusal(user: User, info: RequestInfo) -> ApiError:
    """403, in the real server's words."""
    if not info.is_resource:
        why = f'User "{user.name}" cannot {info.verb} path "{info.path}"'
        return ApiError(403, "Forbidden", f"forbidden: {why}", {})
    full = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {info.verb} resource "{full}" in API group "{info.group}" {where}'
    return forbidden(info.resource, info.group, info.name, why)
