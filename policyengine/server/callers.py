"""Who may ask a port of ours: whoever shows a client certificate, or a bearer token that the API server knows.

Rules:
1. Probes (`/healthz`, `/livez`, `/readyz`) are open to all: the kubelet shows neither.
2. A certificate is checked in the handshake, by the authorities of `--client-ca-file`, as kube-apiserver and
   kube-scheduler call it. Its common name must be one of the names given; without names every certificate will do.
3. A token is asked about as by kube-scheduler's secure port: a TokenReview says who the caller is, a
   SubjectAccessReview whether that is somebody with the right to the path (`nonResourceURLs`), by the method as the
   verb. Answers are believed for ten seconds, in a cache of bounded size. The API server's pod proxy takes the header
   `Authorization` away: a token for the audience of these pages alone is shown in a header of theirs.
4. A caller is refused before its body is read. Where neither is asked for, everybody may ask; for `/debug`, which is on
   loopback then, by a loopback name only: a web page that has its own name resolve to 127.0.0.1 reads nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiohttp import web
from cachetools import TTLCache

from policyengine.control_characters import escaped
from policyengine.kube.config.configuration import is_loopback
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, object_of
from policyengine.kube.scheduler_pages import AUDIENCE, TOKEN_HEADER

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PROBES = ("/healthz", "/livez", "/readyz")
BELIEVED = 10.0
"""Seconds, as kube-scheduler's --authentication-token-webhook-cache-ttl."""
KNOWN = 1024
REVIEWS = 8
"""Reviews under way at once, so that tokens made up by the thousand take no connection from the bindings."""
_BEARER = re.compile(r"bearer +([-\w.~+/]+=*) *", re.ASCII | re.IGNORECASE)
"""An Authorization header with a token (RFC 6750)."""
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def is_probe(request: web.Request) -> bool:
    """Whether the page that answers is a probe's; what the path looks like does not count."""
    return _canonical(request) in PROBES


def _canonical(request: web.Request) -> str:
    """The path of the page that answers, as it was declared; empty where there is none."""
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical


class AccessRefused(Exception):
    """The caller may not see a page: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Reviewer:
    """Asks the API server about tokens. `client` must be one that speaks though this replica does not lead."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: TTLCache[bytes, AccessRefused | None] = TTLCache(KNOWN, BELIEVED)
        self._turns = asyncio.Semaphore(REVIEWS)

    async def check(self, token: str, verb: str, path: str, audience: str = "") -> None:
        """Return if the token is for the audience (empty: the API server's) and its owner has the right. Raises
        `AccessRefused`."""
        key = hashlib.sha256("\0".join((token, verb, path, audience)).encode()).digest()
        if key not in self._known:
            try:
                async with self._turns:
                    self._known[key] = await self._refusal(token, verb, path, audience)
            except (ApiError, ConnectionFailed) as error:
                raise AccessRefused(503, f"the API server cannot be asked who you are: {error}") from None
        refusal = self._known.get(key)
        if refusal is not None:
            raise AccessRefused(refusal.status, str(refusal))

    async def _refusal(self, token: str, verb: str, path: str, audience: str) -> AccessRefused | None:
        about: dict[str, Any] = {"token": token} | ({"audiences": [audience]} if audience else {})
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": about}
        status = object_of(await self._client.call("POST", _TOKENS, review)).get("status") or {}
        # A server that knows nothing of audiences names none, and means itself (authentication/v1, TokenReviewStatus).
        if not status.get("authenticated") or (audience and audience not in (status.get("audiences") or ())):
            return AccessRefused(401, "the token is not known to the API server")
        user: dict[str, Any] = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups") or [],
            "uid": user.get("uid", ""),
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        verdict = object_of(await self._client.call("POST", _ACCESS, asked)).get("status") or {}
        if verdict.get("allowed"):
            return None
        return AccessRefused(403, f"`{spec['user']}` may not {verb} `{path}`")


class Callers:
    """Who may ask."""

    def __init__(self, certificates: bool, names: Collection[str], reviewer: Reviewer | None) -> None:
        """`certificates`: whether one that the port's authorities signed lets its owner in, if it bears one of the
        `names`; `reviewer`: whom to ask about tokens. Without either everybody may ask."""
        self._certificates = certificates
        self._names = frozenset(names)
        self._reviewer = reviewer

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a caller who may ask, or anybody who asks about health."""
        if not is_probe(request):
            try:
                await self._check(request)
            except AccessRefused as refused:
                return web.Response(status=refused.status, text=f"{escaped(str(refused))}\n")
        return await handler(request)

    async def _check(self, request: web.Request) -> None:
        if not self._certificates and self._reviewer is None:
            named = re.sub(r":\d*$", "", request.headers.get("Host", "localhost"))
            if _canonical(request).startswith("/debug/") and not is_loopback(named):
                raise AccessRefused(403, f"ask by the name localhost, not by `{named}`")
            return
        shown = _common_name(request) if self._certificates else None
        if shown is not None and (shown in self._names or not self._names):
            return
        own = TOKEN_HEADER in request.headers
        bearer = _BEARER.fullmatch(request.headers.get(TOKEN_HEADER if own else "Authorization", ""))
        if self._reviewer is not None and bearer is not None:
            path = request.path.encode(errors="replace").decode()
            await self._reviewer.check(bearer[1], request.method.lower(), path, AUDIENCE if own else "")
        elif shown is not None:
            raise AccessRefused(403, f"the client certificate of `{shown}` is none of those that may ask")
        else:
            wanted = [("a client certificate", self._certificates), ("a bearer token", self._reviewer is not None)]
            raise AccessRefused(401, f"show {' or '.join(what for what, asked in wanted if asked)}")


def _common_name(request: web.Request) -> str | None:
    """That of the certificate that the handshake has checked; None where the caller showed none."""
    certificate = request.get_extra_info("peercert")
    if not certificate:
        return None
    subject = (pair for names in certificate.get("subject", ()) for pair in names)
    return next((value for name, value in subject if name == "commonName"), "")
