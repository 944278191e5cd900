"""Acting as somebody else (`kubectl --as`): each name taken on needs the verb `impersonate`.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
"""

from dataclasses import replace

from policyengine.simulator.api_server.access.authentication import AUTHENTICATED, SERVICE_ACCOUNT, service_account
from policyengine.simulator.api_server.access.rbac import Authorizer, refusal
from policyengine.simulator.api_server.requests import ANONYMOUS, Request, RequestInfo, User
from policyengine.simulator.api_server.statuses import bad_request

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"


def taken_on(request: Request, info: RequestInfo, user: User, authorizer: Authorizer) -> User:
    """Who the request is to be from; raises 400 and 403."""
    name = request.headers.get(USER, "")
    groups = tuple(part.strip() for part in request.headers.get(GROUP, "").split(",") if part.strip())
    uid = request.headers.get(UID, "")
    if not name:
        if groups or uid:
            listed = "".join(f'"{group}", ' for group in groups).removesuffix(", ")
            said = f'Name:"", UID:"{uid}", Groups:[]string{{{listed}}}, Extra:map[string][]string(nil)'
            raise bad_request(f"requested &user.DefaultInfo{{{said}}} without impersonating a user name")
        return user
    account = name.removeprefix(SERVICE_ACCOUNT).partition(":") if name.startswith(SERVICE_ACCOUNT) else None
    for wanted in _needed(name, account, groups, uid):
        decision = authorizer.decide(user, wanted)
        if not decision.allowed:
            # The refusal is that of the narrower right, which is tried last: impersonating for this request only.
            mode = "serviceaccount" if account else "user-info"
            raise refusal(user, replace(info, verb=f"impersonate-on:{mode}:{info.verb}"), decision.reason)
    if account and not groups:
        return replace(service_account(account[0], account[2]), uid=uid)
    if name == ANONYMOUS.name:
        return replace(ANONYMOUS, uid=uid)
    return User(name, groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED), uid)


def _needed(name: str, account: tuple[str, str, str] | None, groups: tuple[str, ...], uid: str) -> list[RequestInfo]:
    """What must be allowed: `impersonate` on the user or account, each group and the uid."""
    ask = RequestInfo("impersonate", "", version="v1")
    if account:
        needed = [replace(ask, resource="serviceaccounts", namespace=account[0], name=account[2])]
    else:
        needed = [replace(ask, resource="users", name=name)]
    needed += [replace(ask, resource="groups", name=group) for group in groups]
    if uid:
        needed.append(replace(ask, group="authentication.k8s.io", resource="uids", name=uid))
    return needed
