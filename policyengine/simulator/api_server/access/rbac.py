"""Who may do what: Roles, ClusterRoles and their bindings, read from what is stored, as RBAC reads them.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/. The group `system:masters` may do everything. The
texts of refusals are the real server's.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from policyengine.simulator.api_server.http_requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import ApiError, Json, forbidden
from policyengine.simulator.api_server.storage import Object, Store, child, objects, texts

GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
REMEMBERED = 1000


def _has(value: Json, *wanted: str) -> bool:
    return isinstance(value, list) and any(item in value for item in (*wanted, "*"))


def covers(rule: Object, info: RequestInfo) -> bool:
    """Whether a PolicyRule allows a request."""
    if not _has(rule.get("verbs"), info.verb):
        return False
    if not info.resource:
        return _covers_path(rule.get("nonResourceURLs"), info.path)
    if not _has(rule.get("apiGroups"), info.group):
        return False
    wanted = (info.full_resource, f"*/{info.subresource}") if info.subresource else (info.full_resource,)
    if not _has(rule.get("resources"), *wanted):
        return False
    names = rule.get("resourceNames")
    return not names or (isinstance(names, list) and info.means_name in names)


def _covers_path(patterns: Json, path: str) -> bool:
    return any(text == path or (text.endswith("*") and path.startswith(text[:-1])) for text in texts(patterns))


def applies(subject: Object, user: User, namespace: str) -> bool:
    """Whether a binding's subject means the user."""
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return name == user.name
    if kind == "Group":
        return name in user.groups
    home = subject.get("namespace") or namespace
    return kind == "ServiceAccount" and user.name == f"system:serviceaccount:{home}:{name}"


@dataclass(frozen=True, slots=True)
class Bound:
    """One binding with the rules of its role; `missing` says that the role is not there."""

    name: str
    namespace: str
    role_kind: str
    role: str
    subjects: tuple[Object, ...]
    rules: tuple[Object, ...]
    missing: str

    def subject_of(self, user: User) -> Object | None:
        """The subject that means the user."""
        return next((s for s in self.subjects if applies(s, user, self.namespace)), None)

    def said(self, subject: Object) -> str:
        """Why something is allowed, as reviews say it."""
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        where = f"{self.name}/{self.namespace}" if self.namespace else self.name
        home = subject.get("namespace") if subject.get("kind") == "ServiceAccount" else ""
        who = f"{subject.get('name')}/{home}" if home else str(subject.get("name"))
        return f'RBAC: allowed by {kind} "{where}" of {self.role_kind} "{self.role}" to {subject.get("kind")} "{who}"'


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and the reason reviews and refusals give."""

    allowed: bool
    reason: str = ""


class Authorizer:
    """Answers whether a user may do something, from the roles stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refusals: deque[str] = deque(maxlen=REMEMBERED)
        """What was refused, latest last: `USER VERB WHAT`."""
        self._bound: list[Bound] | None = None

    def refresh(self) -> None:
        """Read roles and bindings again; called after a write to one of them."""
        self._bound = None

    def _load(self) -> list[Bound]:
        """Every binding, those of the whole cluster first."""
        collections = [self._store.collection((GROUP, plural)) for plural in ("clusterrolebindings", "rolebindings")]
        entries = [held.entries[key] for held in collections for key in sorted(held.entries)]
        return [self.bound(entry.object(), entry.namespace) for entry in entries]

    def bound(self, binding: Object, namespace: str) -> Bound:
        """A binding and what it gives."""
        reference = child(binding, "roleRef")
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        plural, key = ("roles", f"{namespace}/{name}") if kind == "Role" else ("clusterroles", name)
        found = self._store.collection((GROUP, plural)).entries.get(key)
        rules = tuple(objects(found.object().get("rules"))) if found else ()
        missing = "" if found else f'{plural[:-1]}.{GROUP} "{name}" not found'
        said = str(child(binding, "metadata").get("name"))
        return Bound(said, namespace, kind, name, tuple(objects(binding.get("subjects"))), rules, missing)

    def granted(self, user: User, namespace: str) -> Iterator[tuple[Bound, Object]]:
        """The bindings that mean a user in a namespace, each with the subject that does."""
        if self._bound is None:
            self._bound = self._load()
        for bound in self._bound:
            subject = bound.subject_of(user) if bound.namespace in ("", namespace) else None
            if subject is not None:
                yield bound, subject

    def rules(self, user: User, namespace: str) -> Iterator[Object]:
        """All rules that hold for a user in a namespace."""
        for bound, _ in self.granted(user, namespace):
            yield from bound.rules

    def missing(self, user: User, namespace: str) -> list[str]:
        """The roles bound to a user that are not there."""
        return [bound.missing for bound, _ in self.granted(user, namespace) if bound.missing]

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Whether `user` may do what `info` says, and why."""
        if MASTERS in user.groups:
            return Decision(True)
        missing: list[str] = []
        for bound, subject in self.granted(user, info.namespace):
            if any(covers(rule, info) for rule in bound.rules):
                return Decision(True, bound.said(subject))
            if bound.missing:
                missing.append(bound.missing)
        if not missing:
            return Decision(False)
        return Decision(False, "RBAC: " + (missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"))

    def check(self, user: User, info: RequestInfo) -> None:
        """Raise the 403 of a request that is not allowed."""
        decision = self.decide(user, info)
        if not decision.allowed:
            self.refusals.append(f"{user.name} {info.verb} {info.path}")
            raise refusal(user, info, decision.reason)


def refusal(user: User, info: RequestInfo, reason: str = "") -> ApiError:
    """403, in the real server's words."""
    why_not = f": {reason}" if reason else ""
    if not info.resource:
        why = f'User "{user.name}" cannot {info.verb} path "{info.path}"{why_not}'
        return ApiError(403, "Forbidden", f"forbidden: {why}", {})
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    what = f'resource "{info.full_resource}" in API group "{info.group}"'
    why = f'User "{user.name}" cannot {info.verb} {what} {where}{why_not}'
    return forbidden(info.resource, info.group, info.means_name, why)
