"""Serving custom resources: definitions come, change and go, and their kinds with them."""

from collections.abc import Iterator

from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.kinds.served import STATUS_VERBS, Kind, Subresource
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object, child, metadata, objects, texts
from policyengine.simulator.api_server.writing.call import Caller
from policyengine.simulator.api_server.writing.rest_storage import Registry

CALLER = Caller(ADMIN, "kube-apiserver/v1.36.2")


def follow_definition(registry: Registry, before: Object | None, after: Object | None) -> None:
    """A definition was written: serve what it says now."""
    kinds = registry.kinds
    old = child(before, "spec") if before else {}
    if old:
        kinds.remove(str(old.get("group")), str(child(old, "names").get("plural")))
    if after is None or metadata(after).get("deletionTimestamp"):
        _clear(registry, old)
        return
    for kind in kinds_of(after):
        kinds.add(kind)
    if child(after, "status").get("conditions") is None:
        _establish(registry, str(metadata(after)["name"]))


def _clear(registry: Registry, spec: Object) -> None:
    """The objects of a definition go with it, and their watches end."""
    key = (str(spec.get("group")), str(child(spec, "names").get("plural")))
    collection = registry.store.collection(key)
    kind = Kind(key[0], "", key[1], str(child(spec, "names").get("kind")), False, "", custom={})
    for entry in list(collection.entries.values()):
        registry.discard(kind, entry, CALLER)
    for watcher in list(collection.watchers):
        watcher.close()
    registry.store.drop(key)


def _establish(registry: Registry, name: str) -> None:
    """Accept a definition's names and say that it is served, as the controllers do right after its creation."""
    kind = registry.kinds.built_in("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    before = registry.collection(kind).entries.get(name)
    if before is None:
        return
    definition = before.object()
    definition["status"] = established(definition, registry.now())
    registry.commit(kind, "update", before, definition, CALLER, "status")


def kinds_of(definition: Object) -> Iterator[Kind]:
    """The kinds a CustomResourceDefinition serves, one a served version."""
    spec = child(definition, "spec")
    names = child(spec, "names")
    for version in objects(spec.get("versions")):
        if not version.get("served"):
            continue
        kind = Kind(
            str(spec.get("group")),
            str(version.get("name")),
            str(names.get("plural")),
            str(names.get("kind")),
            spec.get("scope") == "Namespaced",
            str(names.get("singular") or str(names.get("kind")).lower()),
            short_names=tuple(texts(names.get("shortNames"))),
            categories=tuple(texts(names.get("categories"))),
            fields=tuple(str(row.get("jsonPath", "")).lstrip(".") for row in objects(version.get("selectableFields"))),
            traits={"generation", "versioned"},
            custom=version,
        )
        subresources = child(version, "subresources")
        if isinstance(subresources.get("status"), dict):
            kind.subresources["status"] = Subresource("status", kind.kind, STATUS_VERBS)
        if isinstance(subresources.get("scale"), dict):
            kind.subresources["scale"] = Subresource("scale", "Scale", STATUS_VERBS, "autoscaling", "v1")
        yield kind


def established(definition: Object, now: str) -> Object:
    """The definition's status once its names are accepted and it is served."""
    conditions: list[Json] = [
        {"type": type_, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    names = dict(child(definition, "spec", "names"))
    return {**child(definition, "status"), "conditions": conditions, "acceptedNames": names}
