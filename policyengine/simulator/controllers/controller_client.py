"""What controllers share: calls to an API server, following its objects, and the writes they ask for.

They are clients like any other, over a `Transport`: on virtual time in memory, or against a real API server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import Any

import msgspec

from policyengine.clock import Clock
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, Transport, error_of, object_of

Object = dict[str, Any]
RETRY_SECONDS = 1.0
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Caller:
    """Calls under one name."""

    def __init__(self, transport: Transport, clock: Clock, user_agent: str) -> None:
        self._transport = transport
        self._client = Client(transport)
        self._clock = clock
        self._headers = {"User-Agent": user_agent, "Accept": JSON}

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """One call's answer. Raises `ApiError`, also where the answer is no object, and `ConnectionFailed`."""
        client, headers = self._client, self._headers
        return object_of(await client.call(method, path, body, query=query, content=content, headers=headers))

    async def follow(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[tuple[str, Object]]:
        """Every object as it is and as it changes, for ever; a broken watch begins anew.

        Before the objects of a list, and after them, there is a word: ("LIST", {}) and ("LISTED", {}).
        """
        while True:
            try:
                listed = await self.call("GET", path, query=query)
                yield "LIST", {}
                for item in listed.get("items") or []:
                    yield "ADDED", item
                yield "LISTED", {}
                version = listed["metadata"]["resourceVersion"]
                async for event in self._watch(path, {**(query or {}), "resourceVersion": version}):
                    yield event
            except (ApiError, ConnectionFailed, msgspec.DecodeError):
                await self._clock.sleep(RETRY_SECONDS)

    async def _watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[tuple[str, Object]]:
        asked = {**query, "watch": "1", "allowWatchBookmarks": "true"}
        response = await self._transport.request("GET", path, query=asked, headers=self._headers)
        try:
            if response.status != 200:
                raise error_of(response.status, await response.read())
            async for lines in response.lines():
                for event in map(msgspec.json.decode, lines):
                    if event["type"] == "ERROR":
                        raise error_of(410, b"")
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]
        finally:
            await response.close()


PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/pods",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "Deployment": "/apis/apps/v1/deployments",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "Job": "/apis/batch/v1/jobs",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
}
"""Where each kind is followed, in all namespaces."""
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Write:
    """One call to make."""

    method: str
    path: str
    body: Any = None
    content: str = JSON


@dataclass
class Cluster:
    """What is there, by kind, then by (namespace, name)."""

    kinds: dict[str, dict[tuple[str, str], Object]] = field(default_factory=lambda: {kind: {} for kind in PATHS})

    def all(self, kind: str) -> Iterator[Object]:
        """Every object of a kind, in order of namespace and name."""
        held = self.kinds[kind]
        return (held[key] for key in sorted(held))

    def owned(self, kind: str, owner: Object) -> list[Object]:
        """The objects of a kind that an object controls."""
        uid, namespace = owner["metadata"]["uid"], owner["metadata"].get("namespace")
        return [
            one
            for one in self.all(kind)
            if one["metadata"].get("namespace") == namespace and (controller(one) or {}).get("uid") == uid
        ]


def key_of(obj: Object) -> tuple[str, str]:
    """Namespace and name."""
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def controller(obj: Object) -> Object | None:
    """The reference to who manages an object."""
    references = obj["metadata"].get("ownerReferences") or []
    return next((one for one in references if one.get("controller")), None)


def terminating(obj: Object) -> bool:
    """Whether deletion was asked for."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def finished(pod: Object) -> bool:
    """Whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in FINISHED


def ready(pod: Object) -> bool:
    """Whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def suffix(*words: object, length: int = 5) -> str:
    """Letters as the server's own generated names have them, the same for the same words."""
    digest = sha256("/".join(map(str, words)).encode()).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest[:length])


def free_names(owner: Object, held: list[Object]) -> Iterator[str]:
    """Names for objects an owner makes, without end; those of the objects it has are left out."""
    meta, taken = owner["metadata"], {one["metadata"]["name"] for one in held}
    for number in count():
        name = f"{meta['name']}-{suffix(meta['uid'], number)}"
        if name not in taken:
            yield name


def path(kind: str, namespace: str, name: str = "", sub: str = "") -> str:
    """Where an object, or its kind in a namespace, lies; without a namespace, of a kind that is in none."""
    root, _, plural = PATHS[kind].rpartition("/")
    parts = [root, *(["namespaces", namespace] if namespace else []), plural, name, sub]
    return "/".join(part for part in parts if part)


def of(kind: str, obj: Object, sub: str = "") -> str:
    """Where an object lies."""
    return path(kind, *key_of(obj), sub)


def delete(kind: str, obj: Object, propagation: str = "") -> Write:
    """Delete this very object: another one under its name is left alone."""
    options = {"propagationPolicy": propagation} if propagation else {}
    return Write("DELETE", of(kind, obj), {**options, "preconditions": {"uid": obj["metadata"]["uid"]}})


def status(kind: str, obj: Object, wanted: Object) -> list[Write]:
    """Write a status, where it differs from the one that is there."""
    held = obj.get("status") or {}
    # The server leaves out zeros.
    changed = {name: value for name, value in wanted.items() if held.get(name) != value and (value or held.get(name))}
    if not changed:
        return []
    return [Write("PATCH", of(kind, obj, "status"), {"status": changed}, MERGE)]


def owned_by(kind: str, owner: Object, api_version: str) -> list[Object]:
    """References that say who manages a new object."""
    meta = owner["metadata"]
    reference = {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


def pod_of(template: Object, name: str, owners: list[Object], **labels: str) -> Object:
    """A pod made from a template."""
    meta = template.get("metadata") or {}
    made = {"name": name, "labels": {**(meta.get("labels") or {}), **labels}, "ownerReferences": owners}
    if meta.get("annotations"):
        made["annotations"] = meta["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template["spec"]}
