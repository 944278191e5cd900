"""Questions about access: SelfSubjectAccessReview and its kin, and who a token belongs to.

They are answered and never stored.
"""

from policyengine.simulator.api_server.authentication import Authenticator
from policyengine.simulator.api_server.defaults import child
from policyengine.simulator.api_server.rbac import MASTERS, Authorizer
from policyengine.simulator.api_server.requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object

REVIEWS = frozenset(
    (
        "SelfSubjectAccessReview",
        "SubjectAccessReview",
        "LocalSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SelfSubjectReview",
        "TokenReview",
    )
)


class Reviewer:
    """Answers reviews."""

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator

    def answer(self, kind: str, review: Object, asker: User) -> Object:
        """The review with its status filled in."""
        spec = child(review, "spec")
        if kind == "SelfSubjectAccessReview":
            return {**review, "status": self._access(asker, spec)}
        if kind in ("SubjectAccessReview", "LocalSubjectAccessReview"):
            groups = spec.get("groups")
            names = tuple(str(g) for g in groups) if isinstance(groups, list) else ()
            return {**review, "status": self._access(User(str(spec.get("user") or ""), names), spec)}
        if kind == "SelfSubjectRulesReview":
            return {**review, "status": self._rules(asker, str(spec.get("namespace") or ""))}
        if kind == "TokenReview":
            return {**review, "status": self._token(str(spec.get("token") or ""))}
        return {**review, "status": {"userInfo": _user_info(asker)}}

    def _access(self, user: User, spec: Object) -> Object:
        wanted, path = child(spec, "resourceAttributes"), child(spec, "nonResourceAttributes")

        def text(name: str) -> str:
            return str(wanted.get(name) or "")

        if wanted:
            info = RequestInfo(
                text("verb"),
                "",
                text("group"),
                text("version"),
                text("namespace"),
                text("resource"),
                text("name"),
                text("subresource"),
            )
        else:
            info = RequestInfo(str(path.get("verb") or ""), str(path.get("path") or ""))
        return {"allowed": self._authorizer.allows(user, info)}

    def _rules(self, user: User, namespace: str) -> Object:
        every: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        rules = [every] if MASTERS in user.groups else list(self._authorizer.rules(user, namespace))
        return {
            "resourceRules": [dict(rule) for rule in rules if rule.get("resources")],
            "nonResourceRules": [dict(rule) for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }

    def _token(self, token: str) -> Object:
        user = self._authenticator.user_of_token(token)
        if user is None:
            return {"user": {}, "error": "[invalid bearer token]"}
        return {"authenticated": True, "user": _user_info(user), "audiences": ["https://kubernetes.default.svc"]}


def _user_info(user: User) -> Object:
    groups: list[Json] = list(user.groups)
    out: Object = {"username": user.name, "groups": groups}
    return {**out, "uid": user.uid} if user.uid else out
