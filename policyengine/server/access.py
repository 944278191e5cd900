"""Who may see the endpoints: bearer tokens, asked of the API server as kube-scheduler's secure port does.

A TokenReview says who the caller is, a SubjectAccessReview whether that is somebody with the right to `get` the path
(`nonResourceURLs`). Answers are believed for ten seconds, in a cache of bounded size.
"""

from __future__ import annotations

import hashlib
from typing import Any

from cachetools import TTLCache

from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, object_of

BELIEVED = 10.0
"""Seconds, as kube-scheduler's --authentication-token-webhook-cache-ttl."""
CALLERS = 1024
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class AccessRefused(Exception):
    """The caller may not see a page: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Reviewer:
    """Asks the API server about callers. `client` must be one that speaks though this replica does not lead."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: TTLCache[tuple[str, str], AccessRefused | None] = TTLCache(CALLERS, BELIEVED)

    async def check(self, authorization: str, path: str) -> None:
        """Return if the caller may get the path. Raises `AccessRefused`."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AccessRefused(401, "show a bearer token")
        key = (hashlib.sha256(token.encode()).hexdigest(), path)
        if key not in self._known:
            try:
                self._known[key] = await self._refusal(token.strip(), path)
            except (ApiError, ConnectionFailed) as error:
                raise AccessRefused(503, f"the API server cannot be asked who you are: {error}") from None
        refusal = self._known[key]
        if refusal is not None:
            raise AccessRefused(refusal.status, str(refusal))

    async def _refusal(self, token: str, path: str) -> AccessRefused | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = object_of(await self._client.call("POST", _TOKENS, review)).get("status") or {}
        if not status.get("authenticated"):
            return AccessRefused(401, "the token is not known to the API server")
        user: dict[str, Any] = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups") or [],
            "uid": user.get("uid", ""),
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        verdict = object_of(await self._client.call("POST", _ACCESS, asked)).get("status") or {}
        if verdict.get("allowed"):
            return None
        return AccessRefused(403, f"`{spec['user']}` may not get `{path}`")
