"""Garbage collection: dependents without an owner are deleted; owners wait for dependents, or orphan them, as asked.

https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.simulator.controllers.client import MERGE, Object
from policyengine.simulator.controllers.objects import PATHS, Cluster, Write, delete, of, terminating

OWNERS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def owners(cluster: Cluster, now: str) -> Iterator[Write]:
    """Delete what lost its last owner; end the deletion of owners whose dependents are gone."""
    alive = {one["metadata"]["uid"] for kind in OWNERS for one in cluster.all(kind)}
    dependents: dict[str, list[tuple[str, Object]]] = {}
    for kind in PATHS:
        for one in cluster.all(kind):
            references = [r for r in one["metadata"].get("ownerReferences") or [] if r["kind"] in OWNERS]
            for reference in references:
                dependents.setdefault(reference["uid"], []).append((kind, one))
            if references and not terminating(one) and not any(r["uid"] in alive for r in references):
                yield delete(kind, one)
    for kind in PATHS:
        for owner in cluster.all(kind):
            if terminating(owner):
                yield from _let_go(kind, owner, dependents.get(owner["metadata"]["uid"], []))


def _let_go(kind: str, owner: Object, dependents: list[tuple[str, Object]]) -> Iterator[Write]:
    finalizers = owner["metadata"].get("finalizers") or []
    for name in (FOREGROUND, ORPHAN):
        if name not in finalizers:
            continue
        for dependent_kind, one in dependents:
            if name == FOREGROUND and not terminating(one):
                yield delete(dependent_kind, one, "Foreground" if dependent_kind in OWNERS else "")
            elif name == ORPHAN:
                kept = [r for r in one["metadata"]["ownerReferences"] if r["uid"] != owner["metadata"]["uid"]]
                change = {"metadata": {"uid": one["metadata"]["uid"], "ownerReferences": kept or None}}
                yield Write("PATCH", of(dependent_kind, one), change, MERGE)
        if not dependents:
            left = [one for one in finalizers if one != name]
            change = {"metadata": {"resourceVersion": owner["metadata"]["resourceVersion"], "finalizers": left}}
            yield Write("PATCH", of(kind, owner), change, MERGE)
