"""Who asks: bearer tokens, client certificates (CN is the user, O the groups), and acting as somebody else.

Without credentials a request is from `system:anonymous`. Each name taken on with `kubectl --as` needs the verb
`impersonate` (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
"""

import ssl
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from policyengine.simulator.api_server.access.rbac import Authorizer, refusal
from policyengine.simulator.api_server.http_requests import ADMIN, ANONYMOUS, Request, RequestInfo, User
from policyengine.simulator.api_server.statuses import ApiError, bad_request

AUTHENTICATED = "system:authenticated"
SERVICE_ACCOUNT = "system:serviceaccount:"
ISSUER = "https://kubernetes.default.svc"
"""The server's own audience."""


def service_account(namespace: str, name: str) -> User:
    """A ServiceAccount as a user, with its groups."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"{SERVICE_ACCOUNT}{namespace}:{name}", groups)


class Authenticator:
    """Finds the user of a request. Without any credentials configured, everyone is the administrator."""

    def __init__(self, tokens: Mapping[str, User] | None) -> None:
        self._tokens = dict(tokens) if tokens is not None else None
        self._audiences: dict[str, frozenset[str]] = {}
        """Of tokens that are not for this server, or not for it alone."""

    @property
    def open(self) -> bool:
        """Whether no credentials are configured."""
        return self._tokens is None

    def add(self, token: str, user: User, audiences: Collection[str] = ()) -> None:
        """Know one more token (a TokenRequest was answered); without audiences it is for this server."""
        if self._tokens is not None:
            self._tokens[token] = user
            if audiences:
                self._audiences[token] = frozenset(audiences)

    def user_of_token(self, token: str, audiences: Collection[str] = (ISSUER,)) -> tuple[User | None, list[str]]:
        """Whose token this is, and for which of the audiences; nobody's where it is for none of them."""
        common = sorted(self._audiences.get(token, frozenset((ISSUER,))) & set(audiences))
        return ((self._tokens or {}).get(token) if common else None), common

    def user(self, request: Request) -> User:
        """Who asks; raises the 401 of an unknown token."""
        if request.user is not None:
            return request.user
        if self._tokens is None:
            return ADMIN
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not token:
            return ANONYMOUS
        found = self.user_of_token(token.strip())[0] if scheme.lower() == "bearer" else None
        if found is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return found


class CertificateError(ValueError):
    """A certificate or key that cannot be used; the message names the file."""


def server_context(certificate: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """TLS for the server. With `client_ca`, a client may show a certificate that it signed. Raises CertificateError.

    A certificate that nobody known signed ends the handshake; the real server answers 401.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"the certificate `{certificate}` with key `{key}` cannot be used: {error}") from error
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(f"the certificate authority `{client_ca}` cannot be used: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def user_of(certificate: Mapping[str, object] | None) -> User | None:
    """Whom a client certificate names; None without one, or without a common name.

    `certificate` is what `ssl.SSLSocket.getpeercert` gives: only ones that were verified are filled.
    """
    names: dict[str, list[str]] = {}
    subject = certificate.get("subject", ()) if certificate else ()
    for part in subject if isinstance(subject, tuple) else ():
        for name, value in part:
            names.setdefault(name, []).append(value)
    common = names.get("commonName", [])
    if not common:
        return None
    return User(common[-1], (*names.get("organizationName", []), AUTHENTICATED))


IMPERSONATE_USER, IMPERSONATE_GROUP, IMPERSONATE_UID = "impersonate-user", "impersonate-group", "impersonate-uid"


def impersonated(request: Request, info: RequestInfo, user: User, authorizer: Authorizer) -> User:
    """Who the request is to be from; raises 400 and 403."""
    name = request.headers.get(IMPERSONATE_USER, "")
    groups = tuple(part.strip() for part in request.headers.get(IMPERSONATE_GROUP, "").split(",") if part.strip())
    uid = request.headers.get(IMPERSONATE_UID, "")
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
