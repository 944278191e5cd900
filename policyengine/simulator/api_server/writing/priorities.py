"""The admission plugin Priority: a pod's priority comes from its PriorityClass, and of classes one is the default.

The rules are those of plugin/pkg/admission/priority. Without it (as with `--disable-admission-plugins=Priority`) pods
keep what they say.
"""

from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import User
from policyengine.simulator.api_server.statuses import ApiError, Json, forbidden
from policyengine.simulator.api_server.storage.store import Object, Store, child, metadata

DEFAULT_VALUE = 0
DEFAULT_POLICY = "PreemptLowerPriority"


class PriorityAdmission:
    """Looks at pods and PriorityClasses before they are written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, kind: Kind, new: Object, old: Object | None, user: User, verb: str) -> None:
        """Fill in or keep a pod's priority; 403 for one that contradicts its class, and for a second default class."""
        if kind.kind == "Pod":
            self._create(new) if old is None else _keep(child(new, "spec"), child(old, "spec"))
        elif kind.kind == "PriorityClass" and new.get("globalDefault"):
            self._only_default(kind, new, old)

    def _create(self, pod: Object) -> None:
        spec, name = child(pod, "spec"), str(metadata(pod).get("name") or "")
        value, policy = self._of_class(spec, name)
        given = spec.get("priority")
        if given is not None and given != value:
            raise _contradicted(name, "integer value of priority", given, value)
        spec["priority"] = value
        if policy is None:
            return
        wanted = spec.get("preemptionPolicy")
        if wanted is not None and wanted != policy:
            raise _contradicted(name, "string value of PreemptionPolicy", wanted, policy)
        spec["preemptionPolicy"] = policy

    def _of_class(self, spec: Object, pod: str) -> tuple[Json, Json]:
        name = str(spec.get("priorityClassName") or "")
        chosen = self._class(name) if name else self._default()
        if chosen is None:
            if name:
                raise forbidden("pods", "", pod, f"no PriorityClass with name {name} was found")
            return DEFAULT_VALUE, DEFAULT_POLICY
        spec["priorityClassName"] = metadata(chosen)["name"]
        return chosen.get("value"), chosen.get("preemptionPolicy")

    def _class(self, name: str) -> Object | None:
        found = self._store.collection(("scheduling.k8s.io", "priorityclasses")).get(name)
        return found.object() if found else None

    def _default(self) -> Object | None:
        """The default class; of several, which only a race can make, the one of the lowest value."""
        entries = self._store.collection(("scheduling.k8s.io", "priorityclasses")).entries.values()
        found = [obj for obj in (entry.object() for entry in entries) if obj.get("globalDefault")]
        return min(found, key=lambda obj: int(str(obj.get("value", 0))), default=None)

    def _only_default(self, kind: Kind, new: Object, old: Object | None) -> None:
        held = self._default()
        if held is None or (old is not None and metadata(held)["name"] == metadata(old)["name"]):
            return
        why = f"PriorityClass {metadata(held)['name']} is already marked as default. Only one default can exist"
        raise forbidden(kind.plural, kind.group, str(metadata(new).get("name") or ""), why)


def _keep(new: Object, old: Object) -> None:
    """An update that leaves the admitted values out means them."""
    for name in ("priority", "preemptionPolicy"):
        if new.get(name) is None and old.get(name) is not None:
            new[name] = old[name]


def _contradicted(pod: str, what: str, given: Json, computed: Json) -> ApiError:
    why = (
        f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed {computed} "
        "from the given PriorityClass name"
    )
    return forbidden("pods", "", pod, why)
