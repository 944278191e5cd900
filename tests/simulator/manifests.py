"""The RBAC manifests of `deploy/`: applying them, taking verbs out, and the call each verb allows."""

import asyncio
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from policyengine.kube.http.client import Transport

PATH = Path(__file__).resolve().parents[2] / "deploy" / "base" / "rbac.yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
VERSIONS = {
    "": "v1",
    "policyengine.io": "v1alpha1",
    "scheduling.x-k8s.io": "v1alpha1",
    "scheduling.k8s.io": "v1alpha2",
}
CLUSTER_WIDE = (
    *("nodes", "namespaces", "persistentvolumes", "tokenreviews", "subjectaccessreviews", "deviceclasses"),
    *("resourceslices", "storageclasses", "csinodes", "csidrivers", "volumeattachments"),
)
PROGRAMS = ("policyengine-annotator", "policyengine-rewards")
"""Accounts beside the scheduler's, each with roles of its own name."""
METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH"}
PLURALS = {"ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles", "Role": "roles"}


@cache
def manifests() -> tuple[dict[str, Any], ...]:
    """All objects of the file."""
    return tuple(yaml.safe_load_all(PATH.read_text(encoding="utf-8")))


def path_of(obj: dict[str, Any]) -> str:
    """Where an object of the file is put."""
    kind, meta = obj["kind"], obj["metadata"]
    root = "/api/v1" if kind == "ServiceAccount" else RBAC
    scope = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{root}{scope}/{PLURALS.get(kind, kind.lower() + 's')}/{meta['name']}"


@dataclass(frozen=True)
class Grant:
    """One verb on one resource, as a manifest grants it to an account."""

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
    def query(self) -> dict[str, str]:
        """The call's query."""
        return {"watch": "1", "timeoutSeconds": "1"} if self.verb == "watch" else {}

    @property
    def scope(self) -> str:
        """The namespace the call is made in; empty for all."""
        if self.resource.partition("/")[0] in CLUSTER_WIDE:
            return ""
        named = "/" in self.resource or self.verb not in ("list", "watch")
        return self.namespace or ("default" if named else "")

    @property
    def path(self) -> str:
        """The path of a call that needs just this."""
        version = VERSIONS.get(self.group, "v1")
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        plural, _, subresource = self.resource.partition("/")
        space = f"/namespaces/{self.scope}" if self.scope else ""
        named = self.verb not in ("list", "watch", "create") or subresource
        path = f"{root}{space}/{plural}" + (f"/{self.name or 'some'}" if named else "")
        return f"{path}/{subresource}" if subresource else path

    @property
    def refusal(self) -> str:
        """The real server's message without it."""
        plural, _, subresource = self.resource.partition("/")
        what = f"{plural}.{self.group}" if self.group else plural
        named = self.verb not in ("list", "watch", "create") or subresource
        shown = f'{what} "{self.name or "some"}"' if named else what
        # A namespace asked for by name is the request's namespace as well.
        scope = "some" if plural == "namespaces" and named else self.scope
        where = f'in the namespace "{scope}"' if scope else "at the cluster scope"
        who = f"system:serviceaccount:kube-system:{self.account}"
        return (
            f'{shown} is forbidden: User "{who}" cannot {self.verb} resource "{self.resource}" in API group '
            f'"{self.group}" {where}'
        )


def grants() -> list[Grant]:
    """Everything the manifests grant, one by one."""
    return list(_grants())


def _grants() -> Iterator[Grant]:
    for role in (obj for obj in manifests() if obj["kind"] in ("Role", "ClusterRole")):
        name, namespace = role["metadata"]["name"], role["metadata"].get("namespace", "")
        account = name if name in PROGRAMS else "policyengine"
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        only = (rule.get("resourceNames") or [""])[0]
                        yield Grant(name, namespace, group, resource, verb, only, account)


def without(grant: Grant) -> dict[str, Any]:
    """The grant's role with that one verb on that one resource taken out."""
    found = next(o for o in manifests() if o["kind"] in PLURALS and _is_role_of(o, grant))
    role = copy.deepcopy(found)
    rules: list[dict[str, Any]] = []
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs = [v for v in rule["verbs"] if (group, resource, v) != (grant.group, grant.resource, grant.verb)]
                if verbs:
                    rules.append({**rule, "apiGroups": [group], "resources": [resource], "verbs": verbs})
    return {**role, "rules": rules}


def _is_role_of(obj: dict[str, Any], grant: Grant) -> bool:
    meta = obj["metadata"]
    return obj["kind"] != "ServiceAccount" and (meta["name"], meta.get("namespace", "")) == (
        grant.role,
        grant.namespace,
    )


async def call(transport: Transport, grant: Grant) -> tuple[int, str]:
    """Make the grant's call; status and message."""
    body = None if grant.verb in ("get", "list", "watch", "delete") else b"{}"
    content = "application/merge-patch+json" if grant.verb == "patch" else "application/json"
    method = METHODS.get(grant.verb, "DELETE")
    headers = {"Content-Type": content} if body else {}
    response = await transport.request(method, grant.path, query=grant.query, body=body, headers=headers, timeout=30)
    if response.status == 200 and grant.verb == "watch":
        await response.close()
        return 200, ""
    raw = await response.read()
    await response.close()
    if not response.headers.get("Content-Type", "").startswith("application/json"):
        return response.status, raw.decode()
    return response.status, str(json.loads(raw).get("message", ""))


async def apply(transport: Transport, obj: dict[str, Any]) -> None:
    """Server-side apply of one object."""
    headers = {"Content-Type": "application/apply-patch+yaml"}
    query = {"fieldManager": "tests", "force": "true"}
    body = json.dumps(obj).encode()
    response = await transport.request("PATCH", path_of(obj), query=query, body=body, headers=headers, timeout=30)
    assert response.status in (200, 201), await response.read()
    await response.read()
    await response.close()


async def eventually(transport: Transport, grant: Grant, refused: bool) -> tuple[int, str]:
    """The call once the server's caches have heard of the roles: a real one takes a moment."""
    for _ in range(100):
        status, message = await call(transport, grant)
        if (status == 403) is refused:
            return status, message
        await asyncio.sleep(0.05)
    return status, message
