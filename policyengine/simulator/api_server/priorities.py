"""A pod's priority from its PriorityClass, resolved at creation as the Priority admission plugin does."""

from policyengine.simulator.api_server.defaults import child
from policyengine.simulator.api_server.statuses import forbidden
from policyengine.simulator.api_server.storage import Object, Store, metadata

SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def resolve_priority(pod: Object, store: Store) -> None:
    """Write `priority` and `preemptionPolicy` of the class named, or of the global default; raises a 403."""
    spec = child(pod, "spec")
    name = str(spec.get("priorityClassName") or "")
    if not name:
        default = _global_default(store)
        if default is None:
            return
        name = spec["priorityClassName"] = str(metadata(default)["name"])
    found = store.collection(("scheduling.k8s.io", "priorityclasses")).get(name)
    if found is None:
        pod_name = str(metadata(pod).get("name") or "")
        raise forbidden("pods", "", pod_name, f"no PriorityClass with name {name} was found")
    chosen = found.object()
    value, policy = chosen.get("value"), chosen.get("preemptionPolicy")
    given = spec.get("priority")
    if given is not None and given != value:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {value} from the given PriorityClass name"
        )
        raise forbidden("pods", "", str(metadata(pod).get("name") or ""), why)
    spec["priority"] = value
    if policy is not None:
        spec["preemptionPolicy"] = policy


def _global_default(store: Store) -> Object | None:
    """The default class of the lowest value, as the admission plugin takes it."""
    entries = store.collection(("scheduling.k8s.io", "priorityclasses")).entries.values()
    found = [obj for obj in (entry.object() for entry in entries) if obj.get("globalDefault")]
    return min(found, key=lambda obj: int(str(obj.get("value", 0))), default=None)
