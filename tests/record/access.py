"""Who may do what: refusals of every verb, roles, escalation, acting as another, reviews and tokens."""

from typing import Any

from tests.record.session import POOR, Session

SPACE = "/api/v1/namespaces/rec-access"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, BINDINGS = f"{RBAC}/namespaces/rec-access/roles", f"{RBAC}/namespaces/rec-access/rolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1"
ACCOUNT = {"kind": "ServiceAccount", "name": "policyengine", "namespace": "kube-system"}
NAME = "system:serviceaccount:kube-system:policyengine"
MERGE = "application/merge-patch+json"


def rule(groups: list[str], resources: list[str], verbs: list[str], **more: Any) -> dict[str, Any]:
    """A PolicyRule."""
    return {"apiGroups": groups, "resources": resources, "verbs": verbs, **more}


def binding(name: str, role: str, kind: str = "Role", **more: Any) -> dict[str, Any]:
    """A binding of the account."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [ACCOUNT], **more}


async def run(session: Session) -> None:
    """All of it."""
    await session.quietly("POST", "/api/v1/namespaces", {"metadata": {"name": "rec-access"}})
    await refusals(session)
    await roles(session)
    await bad_roles(session)
    await escalation(session)
    await impersonation(session)
    await reviews(session)
    await tokens(session)


async def refusals(session: Session) -> None:
    """Every verb, without rights."""
    for method, path in (
        ("GET", f"{SPACE}/pods"),
        ("GET", f"{SPACE}/pods/p"),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/pods?watch=1"),
        ("GET", f"{SPACE}/pods?watch=1&fieldSelector=metadata.name%3Dp"),
        ("GET", f"{SPACE}/pods?fieldSelector=metadata.name%3Dp"),
        ("POST", f"{SPACE}/pods"),
        ("PUT", f"{SPACE}/pods/p"),
        ("PATCH", f"{SPACE}/pods/p"),
        ("DELETE", f"{SPACE}/pods/p"),
        ("DELETE", f"{SPACE}/pods"),
        ("POST", f"{SPACE}/pods/p/binding"),
        ("POST", f"{SPACE}/pods/p/eviction"),
        ("PATCH", f"{SPACE}/pods/p/status"),
        ("GET", f"{SPACE}/pods/p/log"),
        ("GET", "/api/v1/nodes/n"),
        ("PATCH", "/api/v1/nodes/n"),
        ("GET", "/api/v1/namespaces/rec-access"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/rec-access/events"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/policyengine"),
        ("GET", "/apis/nonsense.io/v1/things"),
        ("GET", "/api/v1/nonsense"),
        ("GET", "/metrics"),
        ("GET", "/healthz"),
        ("POST", "/healthz"),
        ("OPTIONS", f"{SPACE}/pods"),
    ):
        body = {} if method in ("POST", "PUT", "PATCH") else None
        await session.ask(
            f"refused: {method} {path}", method, path, body, content=MERGE if method == "PATCH" else None, user=POOR
        )


async def roles(session: Session) -> None:
    """What a role gives, and that it ends with its binding."""
    rules = [
        rule([""], ["pods"], ["list", "watch"]),
        rule([""], ["configmaps"], ["get", "list", "watch", "update"], resourceNames=["one"]),
        rule([""], ["pods/binding"], ["create"]),
        rule([""], ["*/status"], ["patch"]),
    ]
    await session.ask("role: made", "POST", ROLES, {"metadata": {"name": "some"}, "rules": rules})
    await session.ask("role: bound", "POST", BINDINGS, binding("some", "some"))
    await session.settle()
    for name, method, path in (
        ("list here", "GET", f"{SPACE}/pods"),
        ("list everywhere", "GET", "/api/v1/pods"),
        ("list elsewhere", "GET", "/api/v1/namespaces/default/pods"),
        ("get", "GET", f"{SPACE}/pods/p"),
        ("the name allowed", "GET", f"{SPACE}/configmaps/one"),
        ("another name", "GET", f"{SPACE}/configmaps/two"),
        ("list of all names", "GET", f"{SPACE}/configmaps"),
        ("list of the name allowed", "GET", f"{SPACE}/configmaps?fieldSelector=metadata.name%3Done"),
        ("list of another name", "GET", f"{SPACE}/configmaps?fieldSelector=metadata.name%3Dtwo"),
        ("bind what is not there", "POST", f"{SPACE}/pods/p/binding"),
        ("status by a pattern", "PATCH", f"{SPACE}/pods/p/status"),
        ("the object by that pattern", "PATCH", f"{SPACE}/pods/p"),
        ("an eviction", "POST", f"{SPACE}/pods/p/eviction"),
    ):
        body = {} if method == "PATCH" else {"target": {"name": "n"}} if method == "POST" else None
        await session.ask(f"role: {name}", method, path, body, content=MERGE if method == "PATCH" else None, user=POOR)
    await session.ask("role: another roleRef", "PUT", f"{BINDINGS}/some", binding("some", "other"))
    await session.ask("role: unbound", "DELETE", f"{BINDINGS}/some")
    await session.settle()
    await session.ask("role: no longer", "GET", f"{SPACE}/pods", user=POOR)
    await session.ask("role: bound to what is not there", "POST", BINDINGS, binding("ghost", "ghost"))
    await session.settle()
    await session.ask("role: that gives nothing", "GET", f"{SPACE}/pods", user=POOR)
    await session.quietly("DELETE", f"{BINDINGS}/ghost")
    await session.settle()


async def bad_roles(session: Session) -> None:
    """Roles and bindings that make no sense."""
    rules: dict[str, dict[str, Any]] = {
        "no verbs": rule([""], ["pods"], []),
        "no groups": {"resources": ["pods"], "verbs": ["get"]},
        "no resources": {"apiGroups": [""], "verbs": ["get"]},
        "paths in a namespace": {"nonResourceURLs": ["/x"], "verbs": ["get"]},
    }
    for name, bad in rules.items():
        await session.ask(f"bad role: {name}", "POST", ROLES, {"metadata": {"name": "bad"}, "rules": [bad]})
    both = {"nonResourceURLs": ["/x"], "verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    await session.ask(
        "bad role: paths and resources", "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "bad"}, "rules": [both]}
    )
    bindings: dict[str, dict[str, Any]] = {
        "no role": {"metadata": {"name": "bad"}, "subjects": [ACCOUNT]},
        "an unknown kind of role": binding("bad", "x", kind="Rule"),
        "an account without a namespace": binding("bad", "x", subjects=[{"kind": "ServiceAccount", "name": "x"}]),
        "an unknown kind of subject": binding("bad", "x", subjects=[{"kind": "Robot", "name": "x"}]),
        "a subject without a name": binding("bad", "x", subjects=[{"kind": "User", "name": ""}]),
    }
    for name, bad in bindings.items():
        await session.ask(
            f"bad binding: {name}", "POST", f"{RBAC}/clusterrolebindings" if "namespace" in name else BINDINGS, bad
        )


async def escalation(session: Session) -> None:
    """Nobody gives more than they hold."""
    roles = rule(["rbac.authorization.k8s.io"], ["roles", "rolebindings"], ["create", "update", "get"])
    keeper = [roles, rule([""], ["pods"], ["get"])]
    await session.quietly("POST", ROLES, {"metadata": {"name": "keeper"}, "rules": keeper})
    await session.quietly("POST", BINDINGS, binding("keeper", "keeper"))
    await session.settle()
    held = {"metadata": {"name": "held"}, "rules": [rule([""], ["pods"], ["get"])]}
    await session.ask("escalation: a role one holds", "POST", ROLES, held, user=POOR)
    more = {
        "metadata": {"name": "more"},
        "rules": [rule([""], ["pods"], ["get", "delete"]), rule([""], ["secrets"], ["get"], resourceNames=["s"])],
    }
    await session.ask("escalation: a role one does not hold", "POST", ROLES, more, user=POOR)
    grown = {"metadata": {"name": "held"}, "rules": [rule([""], ["pods"], ["get", "list"])]}
    await session.ask("escalation: a role that grows", "PUT", f"{ROLES}/held", grown, user=POOR)
    await session.ask("escalation: binding a role one holds", "POST", BINDINGS, binding("b1", "held"), user=POOR)
    admin = binding("b2", "cluster-admin", kind="ClusterRole")
    await session.ask("escalation: binding a role one does not hold", "POST", BINDINGS, admin, user=POOR)
    await session.quietly("DELETE", f"{BINDINGS}/keeper")
    await session.quietly("DELETE", f"{BINDINGS}/b1")
    await session.settle()


async def impersonation(session: Session) -> None:
    """Acting as somebody else."""
    whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    ask = session.ask
    await ask("as: a user, without the right", "GET", f"{SPACE}/pods", user=POOR, Impersonate_User="ann")
    await ask("as: an account, without the right", "GET", f"{SPACE}/pods", user=POOR, Impersonate_User=NAME)
    await ask("as: a user", "POST", whoami, {}, Impersonate_User="ann")
    await ask("as: a user with a group", "POST", whoami, {}, Impersonate_User="ann", Impersonate_Group="team")
    await ask("as: an account", "POST", whoami, {}, Impersonate_User=NAME)
    await ask("as: a group without a user", "POST", whoami, {}, Impersonate_Group="team")
    await ask("as: a user without rights", "GET", f"{SPACE}/pods", Impersonate_User="ann")
    await ask("as: nobody", "GET", f"{SPACE}/pods", Impersonate_User="system:anonymous")


async def reviews(session: Session) -> None:
    """Questions about access."""
    await session.quietly("POST", BINDINGS, binding("reader", "some"))
    await session.settle()
    listing = {"namespace": "rec-access", "verb": "list", "resource": "pods"}
    for name, attributes in {
        "what is allowed": listing,
        "what is not": {**listing, "verb": "delete"},
        "a subresource": {**listing, "verb": "create", "subresource": "binding"},
        "everywhere": {"verb": "list", "resource": "pods"},
    }.items():
        body = {"spec": {"resourceAttributes": attributes}}
        await session.ask(f"review: {name}", "POST", f"{REVIEWS}/selfsubjectaccessreviews", body, user=POOR)
    body = {"spec": {"nonResourceAttributes": {"path": "/openapi/v3", "verb": "get"}}}
    await session.ask("review: a path", "POST", f"{REVIEWS}/selfsubjectaccessreviews", body, user=POOR)
    await session.ask("review: nothing", "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {}}, user=POOR)
    other = {"spec": {"resourceAttributes": listing, "user": NAME}}
    await session.ask("review: of another", "POST", f"{REVIEWS}/subjectaccessreviews", other)
    await session.ask("review: of another, refused", "POST", f"{REVIEWS}/subjectaccessreviews", other, user=POOR)
    await session.ask(
        "review: as administrator",
        "POST",
        f"{REVIEWS}/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": listing}},
    )
    await session.ask(
        "review: of nobody", "POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {"resourceAttributes": listing}}
    )
    local = f"{REVIEWS}/namespaces/rec-access/localsubjectaccessreviews"
    away = {
        "metadata": {"namespace": "rec-access"},
        "spec": {"resourceAttributes": {**listing, "namespace": "default"}, "user": NAME},
    }
    await session.ask("review: of another place", "POST", local, away)
    await session.quietly("DELETE", f"{BINDINGS}/reader")
    await session.settle()


async def tokens(session: Session) -> None:
    """Tokens that are asked for, shown and unknown."""
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    await session.ask("token: unknown", "POST", path, {"spec": {"token": "nobody-has-this"}})
    await session.ask("token: none", "POST", path, {"spec": {}})
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    await session.ask("token: of an account that is not there", "POST", f"{accounts}/absent/token", {"spec": {}})
    short = {"spec": {"expirationSeconds": 5}}
    await session.ask("token: too short", "POST", f"{accounts}/policyengine/token", short)
    await session.ask("token: refused", "POST", f"{accounts}/policyengine/token", {"spec": {}}, user=POOR)
