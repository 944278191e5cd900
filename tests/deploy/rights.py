"""The rights that `deploy/` gives: applied to a server, and with one verb taken out."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from policyengine.kube.http.client import Transport
from tests.deploy.manifests import DEPLOY, documents

FILES = (
    *("base/namespace.yaml", "base/rbac.yaml", "overlays/webhook/rbac.yaml", "overlays/as-extender/rbac.yaml"),
    "annotator.yaml",
)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
PLURALS = {"ServiceAccount": "serviceaccounts", "Namespace": "namespaces", "ResourceQuota": "resourcequotas"}
ROLES = ("ClusterRole", "Role")


@cache
def manifests() -> tuple[dict[str, Any], ...]:
    """The namespace of the policies, and every account with its roles."""
    found = [one for path in FILES for one in documents(DEPLOY / path)]
    return tuple(one for one in found if one["kind"] in PLURALS or one["apiVersion"].startswith("rbac."))


def path_of(obj: dict[str, Any]) -> str:
    """Where an object is put."""
    kind, meta = obj["kind"], obj["metadata"]
    root = "/api/v1" if kind in PLURALS else RBAC
    scope = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{root}{scope}/{PLURALS.get(kind, kind.lower() + 's')}/{meta['name']}"


@dataclass(frozen=True)
class Grant:
    """One verb on one resource, as a role grants it to an account."""

    role: str
    namespace: str
    group: str
    resource: str
    verb: str
    name: str
    account: str

    @property
    def id(self) -> str:
        """Its name in test output."""
        return f"{self.role}-{self.group or 'core'}-{self.resource}-{self.verb}".replace("/", ".")

    @property
    def right(self) -> tuple[str, str, str]:
        """(group, resource with its subresource, verb)."""
        return self.group, self.resource, self.verb


@cache
def grants() -> tuple[Grant, ...]:
    """Everything that the manifests grant an account on objects, one by one."""
    return tuple(_grants())


def _grants() -> Iterator[Grant]:
    bindings = [one for one in manifests() if one["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    for binding in bindings:
        (subject,), namespace = binding["subjects"], binding["metadata"].get("namespace", "")
        for rule in _role(binding["roleRef"]["kind"], binding["roleRef"]["name"], namespace)["rules"]:
            for group in rule.get("apiGroups", ()):
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        only = (rule.get("resourceNames") or [""])[0]
                        about = group, resource, verb, only, subject["name"]
                        yield Grant(binding["roleRef"]["name"], namespace, *about)


def _role(kind: str, name: str, namespace: str) -> dict[str, Any]:
    return next(
        one
        for one in manifests()
        if (one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", "")) == (kind, name, namespace)
    )


def role_of(grant: Grant) -> dict[str, Any]:
    """The whole role."""
    return _role("Role" if grant.namespace else "ClusterRole", grant.role, grant.namespace)


def without(grant: Grant) -> dict[str, Any]:
    """The grant's role with that one verb on that one resource taken out."""
    rules: list[dict[str, Any]] = []
    for rule in copy.deepcopy(role_of(grant)["rules"]):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs = [verb for verb in rule["verbs"] if (group, resource, verb) != grant.right]
                if verbs:
                    rules.append({**rule, "apiGroups": [group], "resources": [resource], "verbs": verbs})
    return {**role_of(grant), "rules": rules}


async def apply(transport: Transport, obj: dict[str, Any]) -> None:
    """Server-side apply of one object."""
    headers = {"Content-Type": "application/apply-patch+yaml"}
    query = {"fieldManager": "tests", "force": "true"}
    body = json.dumps(obj).encode()
    response = await transport.request("PATCH", path_of(obj), query=query, body=body, headers=headers, timeout=30)
    assert response.status in (200, 201), await response.read()
    await response.read()
    await response.close()


async def until(transport: Transport, grant: Grant, holds: bool) -> None:
    """Wait until the server's authorizer has heard of the role: a real one takes a moment."""
    resource, _, subresource = grant.resource.partition("/")
    asked = {
        "namespace": grant.namespace,
        "verb": grant.verb,
        "group": grant.group,
        "resource": resource,
        "subresource": subresource,
        "name": grant.name,
    }
    spec = {"user": f"system:serviceaccount:kube-system:{grant.account}", "resourceAttributes": asked}
    for _ in range(200):
        if (await post(transport, REVIEW, {"spec": spec}))["status"]["allowed"] is holds:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{grant} {'never held' if holds else 'holds for ever'}")


async def post(transport: Transport, path: str, body: Any) -> Any:
    """Create an object; as the server made it."""
    headers = {"Content-Type": "application/json"}
    response = await transport.request("POST", path, body=json.dumps(body).encode(), headers=headers, timeout=30.0)
    raw = await response.read()
    await response.close()
    assert response.status == 201, raw
    return json.loads(raw)


async def token(transport: Transport, account: str) -> str:
    """A token of an account."""
    path = f"/api/v1/namespaces/kube-system/serviceaccounts/{account}/token"
    found: str = (await post(transport, path, {"spec": {}}))["status"]["token"]
    return found
