"""Questions about access: SelfSubjectAccessReview and the like, and who a token belongs to.

They are answered and never stored.
"""

from policyengine.simulator.api_server.access.authentication import ISSUER, Authenticator
from policyengine.simulator.api_server.access.rbac import MASTERS, Authorizer
from policyengine.simulator.api_server.field_errors import invalid as invalid_value
from policyengine.simulator.api_server.http_requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import Cause, Json, bad_request, invalid
from policyengine.simulator.api_server.storage import Object, child, texts

ATTRIBUTES = ("verb", "group", "version", "namespace", "resource", "name", "subresource")


def _check_attributes(kind: str, review: Object, spec: Object) -> None:
    """Exactly one kind of attributes, and of this namespace where the review has one."""
    wanted, paths = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes: list[Cause] = []
    if bool(wanted is None) is bool(paths is None):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        both = "cannot be specified in combination with resourceAttributes"
        causes.append(
            invalid_value("spec.resourceAttributes", None, why)
            if wanted is None
            else invalid_value("spec.nonResourceAttributes", paths, both)
        )
    if not kind.startswith("Self") and not spec.get("user") and not spec.get("groups"):
        causes.append(invalid_value("spec.user", "", "at least one of user or group must be specified"))
    home = child(review, "metadata").get("namespace")
    if kind == "LocalSubjectAccessReview" and isinstance(wanted, dict) and wanted.get("namespace") != home:
        namespace = str(wanted.get("namespace") or "")
        causes.append(invalid_value("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace"))
    if causes:
        raise invalid("", "authorization.k8s.io", "", causes)


def answered(
    kind: str, review: Object, asker: User, now: str, authorizer: Authorizer, authenticator: Authenticator
) -> Object:
    """The review with its status filled in."""
    spec = child(review, "spec")
    if kind.endswith("AccessReview"):
        _check_attributes(kind, review, spec)
        named = User(str(spec.get("user") or ""), tuple(texts(spec.get("groups"))))
        user = asker if kind.startswith("Self") else named
        decision = authorizer.decide(user, _asked(spec))
        reason: Object = {"reason": decision.reason} if decision.reason else {}
        return {**review, "status": {"allowed": decision.allowed, **reason}}
    if kind == "SelfSubjectRulesReview":
        return {**review, "status": _rules(authorizer, asker, str(spec.get("namespace") or ""))}
    if kind == "TokenReview":
        audiences = tuple(texts(spec.get("audiences"))) or (ISSUER,)
        return {**review, "status": _token(authenticator, str(spec.get("token") or ""), audiences)}
    return {"metadata": {"creationTimestamp": now}, "status": {"userInfo": _user_info(asker)}}


def _asked(spec: Object) -> RequestInfo:
    wanted, path = child(spec, "resourceAttributes"), child(spec, "nonResourceAttributes")
    if wanted:
        return RequestInfo(path="", **{name: str(wanted.get(name) or "") for name in ATTRIBUTES})
    return RequestInfo(str(path.get("verb") or ""), str(path.get("path") or ""))


def _rules(authorizer: Authorizer, user: User, namespace: str) -> Object:
    every: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    rules = [every] if MASTERS in user.groups else list(authorizer.rules(user, namespace))
    return {
        "resourceRules": [dict(rule) for rule in rules if rule.get("resources")],
        "nonResourceRules": [dict(rule) for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }


def _token(authenticator: Authenticator, token: str, audiences: tuple[str, ...]) -> Object:
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user, common = authenticator.user_of_token(token, audiences)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user_info(user), "audiences": list[Json](common)}


def _user_info(user: User) -> Object:
    groups: list[Json] = list(user.groups)
    out: Object = {"username": user.name, "groups": groups}
    return {**out, "uid": user.uid} if user.uid else out
