"""Stand-ins for the controllers a sandbox needs: namespaces that go empty themselves, budgets that are counted.

The API server alone behaves as one without a controller manager; these run beside it, like the kubelet, each write
through the registry as the real ones write through the API. They run when something changed, never by polling.
"""

import asyncio
from fractions import Fraction
from math import ceil

from policyengine.simulator.api_server.defaults import child, objects
from policyengine.simulator.api_server.deletion import DeleteOptions
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.kinds import Kind
from policyengine.simulator.api_server.registry import Caller
from policyengine.simulator.api_server.requests import ADMIN
from policyengine.simulator.api_server.selectors import from_object, matches_labels
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Change, Collection, Entry, Object, metadata

# A burst of changes is looked at once: counting is linear in the pods of the budgets' namespaces.
PAUSE_SECONDS = 0.05
CALLER = Caller(ADMIN, "kube-controller-manager/v1.36.2")


class _Bell:
    """A watcher that only says that something changed."""

    def __init__(self) -> None:
        self.rung = asyncio.Event()

    def offer(self, change: Change) -> None:
        """Something changed."""
        self.rung.set()

    def close(self) -> None:
        """Nothing more will."""


class Controllers:
    """Runs the stand-in controllers of one server."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._namespaces = self._kind("", "namespaces")
        self._pods = self._kind("", "pods")
        self._budgets = self._kind("policy", "poddisruptionbudgets")

    def _kind(self, group: str, plural: str) -> Kind:
        found = self._api.kinds.find(group, "v1", plural)
        assert found is not None
        return found

    async def run(self) -> None:
        """Serve until cancelled."""
        bell = _Bell()
        watched = [self._collection(kind) for kind in (self._namespaces, self._pods, self._budgets)]
        for collection in watched:
            collection.watchers.append(bell)
        try:
            while True:
                self.settle()
                bell.rung.clear()
                await bell.rung.wait()
                await self._api.clock.sleep(PAUSE_SECONDS)
        finally:
            for collection in watched:
                collection.watchers.remove(bell)

    def _collection(self, kind: Kind) -> Collection:
        return self._api.registry.collection(kind)

    def settle(self) -> None:
        """Do everything there is to do now."""
        for entry in list(self._collection(self._namespaces).entries.values()):
            namespace = entry.object()
            if metadata(namespace).get("deletionTimestamp"):
                self._empty(entry, namespace)
        if self._collection(self._budgets).entries:
            self._count_budgets()

    # Namespaces

    def _empty(self, entry: Entry, namespace: Object) -> None:
        """Delete what is in a namespace that goes; once it is empty, let it go."""
        left = 0
        for kind in self._api.kinds:
            collection = self._collection(kind)
            if not kind.namespaced or "delete" not in kind.verbs:
                continue
            for key in list(collection.keys(entry.name)):
                held = collection.entries[key]
                if not metadata(held.object()).get("deletionTimestamp"):
                    self._api.deleter.delete(kind, held.namespace, held.name, DeleteOptions(), CALLER)
            left += sum(1 for _ in collection.keys(entry.name))
        if left == 0:
            namespace["spec"] = {}
            current = self._api.registry.commit(self._namespaces, "update", entry, namespace, CALLER, "finalize")
            if not metadata(namespace).get("finalizers"):
                self._api.registry.discard(self._namespaces, current, CALLER)

    # Disruption budgets

    def _count_budgets(self) -> None:
        for entry in list(self._collection(self._budgets).entries.values()):
            budget = entry.object()
            status = self._budget_status(entry.namespace, budget)
            if status != budget.get("status"):
                budget["status"] = status
                self._api.registry.commit(self._budgets, "update", entry, budget, CALLER, "status")

    def _budget_status(self, namespace: str, budget: Object) -> Object:
        """What the disruption controller would say: healthy pods, how many must stay, how many may go."""
        spec, held = child(budget, "spec"), child(budget, "status")
        selector = from_object(spec.get("selector"))
        pods = [] if selector is None else [p for p in self._pods_in(namespace) if matches_labels(selector, _labels(p))]
        wished = len(pods)
        disrupted = {name: at for name, at in child(held, "disruptedPods").items() if name in map(_name, pods)}
        healthy = sum(_ready(pod) and _name(pod) not in disrupted for pod in pods)
        if spec.get("maxUnavailable") is not None:
            needed = max(0, wished - _scaled(spec["maxUnavailable"], wished))
        else:
            needed = _scaled(spec.get("minAvailable", 1), wished)
        allowed = max(0, healthy - needed) if wished else 0
        status: Object = {
            "observedGeneration": metadata(budget).get("generation", 0),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": needed,
            "expectedPods": wished,
            "conditions": [self._allowed(held, allowed > 0, metadata(budget).get("generation", 0))],
        }
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def _allowed(self, held: Object, yes: bool, generation: Json) -> Json:
        word = "True" if yes else "False"
        before = next((c for c in objects(held.get("conditions")) if c.get("status") == word), {})
        return {
            "type": "DisruptionAllowed",
            "status": word,
            "observedGeneration": generation,
            "lastTransitionTime": before.get("lastTransitionTime") or self._api.registry.now(),
            "reason": "SufficientPods" if yes else "InsufficientPods",
            "message": "",
        }

    def _pods_in(self, namespace: str) -> list[Object]:
        collection = self._collection(self._pods)
        found = [collection.entries[key].object() for key in collection.keys(namespace)]
        live = [pod for pod in found if not metadata(pod).get("deletionTimestamp")]
        return [pod for pod in live if child(pod, "status").get("phase") not in ("Succeeded", "Failed")]


def _name(pod: Object) -> str:
    return str(metadata(pod)["name"])


def _labels(pod: Object) -> dict[str, str]:
    return {k: str(v) for k, v in child(metadata(pod), "labels").items()}


def _ready(pod: Object) -> bool:
    rows = objects(child(pod, "status").get("conditions"))
    return any(row.get("type") == "Ready" and row.get("status") == "True" for row in rows)


def _scaled(value: Json, whole: int) -> int:
    """A bound in pods; a percentage is rounded up, as the disruption controller does."""
    if isinstance(value, str):
        return ceil(Fraction(int(value.rstrip("%")), 100) * whole)
    return value if isinstance(value, int) else 0
