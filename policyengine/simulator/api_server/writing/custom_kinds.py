"""Serving custom resources: definitions come, change and go, and their kinds with them."""

from policyengine.simulator.api_server.kinds.crds import establish, kinds_of
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import ADMIN
from policyengine.simulator.api_server.store import Object, child, metadata
from policyengine.simulator.api_server.writing.registry import Caller, Registry

CALLER = Caller(ADMIN, "kube-apiserver/v1.36.2")


class CustomKinds:
    """Keeps a registry's kinds in step with its CustomResourceDefinitions."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def follow(self, before: Object | None, after: Object | None) -> None:
        """A definition was written: serve what it says now."""
        kinds = self._registry.kinds
        old = child(before, "spec") if before else {}
        if old:
            kinds.remove(str(old.get("group")), str(child(old, "names").get("plural")))
        if after is None or metadata(after).get("deletionTimestamp"):
            self._clear(old)
            return
        for kind in kinds_of(after):
            kinds.add(kind)
        if child(after, "status").get("conditions") is None:
            self.establish(str(metadata(after)["name"]))

    def _clear(self, spec: Object) -> None:
        """The objects of a definition go with it, and their watches end."""
        key = (str(spec.get("group")), str(child(spec, "names").get("plural")))
        collection = self._registry.store.collection(key)
        kind = Kind(key[0], "", key[1], str(child(spec, "names").get("kind")), False, "", custom={})
        for entry in list(collection.entries.values()):
            self._registry.discard(kind, entry, CALLER)
        for watcher in list(collection.watchers):
            watcher.close()
        self._registry.store.drop(key)

    def establish(self, name: str) -> None:
        """Accept a definition's names and say that it is served, as the controllers do right after its creation."""
        kind = self._registry.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert kind is not None
        before = self._registry.collection(kind).get(name)
        if before is None:
            return
        definition = before.object()
        definition["status"] = establish(definition, self._registry.now())
        self._registry.commit(kind, "update", before, definition, CALLER, "status")
