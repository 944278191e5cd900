"""The admission plugin Priority: a pod's priority comes from its PriorityClass, and of classes one is the default.

The rules are those of plugin/pkg/admission/priority. Without it (as with `--disable-admission-plugins=Priority`) pods
keep what they say.

Who may write which part of a ResourceClaim's status: allocating and reporting devices need rights of their own.

Beside `resourceclaims/status`, Kubernetes 1.36 asks for the same verb on `resourceclaims/binding`, in the whole
cluster, where `allocation` or `reservedFor` change, and for `arbitrary-node:` and the verb on `resourceclaims/driver`,
by the driver's name, where `devices` do (pkg/registry/resource/utils.go). A token here belongs to no node.
"""

from collections.abc import Iterator

from policyengine.simulator.api_server.access.rbac import Authorizer
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import ApiError, Cause, Json, forbidden, invalid
from policyengine.simulator.api_server.storage.store import Object, Store, child, metadata, objects
from policyengine.simulator.api_server.validation.metadata import forbidden as forbidden_field

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


CLAIM_GROUP = "resource.k8s.io"
DEVICE = ("driver", "pool", "device", "shareID")


class ClaimStatusGuard:
    """Checks every update of a ResourceClaim."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, kind: Kind, obj: Object, old: Object | None, user: User, verb: str) -> None:
        """Raise the 422 of a change that needs a right the user has not."""
        if kind.kind != "ResourceClaim" or old is None:
            return
        causes = list(self._causes(kind, child(obj, "status"), child(old, "status"), metadata(old), user, verb))
        if causes:
            raise invalid(kind.kind, CLAIM_GROUP, str(metadata(old)["name"]), causes)

    def _causes(self, kind: Kind, new: Object, old: Object, meta: Object, user: User, verb: str) -> Iterator[Cause]:
        if any(new.get(name) != old.get(name) for name in ("allocation", "reservedFor")):
            why = self._lacks(user, RequestInfo(verb, "", CLAIM_GROUP, kind.version, "", kind.plural, "", "binding"))
            what = "changing status.allocation or status.reservedFor requires"
            if why:
                yield forbidden_field(
                    "status.allocation", f'{what} resource="resourceclaims/binding", verb="{verb}" {why}'
                )
        if new.get("allocation") is None:
            return
        verb = f"arbitrary-node:{verb}"
        for driver in sorted(_changed_drivers(new, old)):
            space = str(meta.get("namespace") or "")
            why = self._lacks(
                user, RequestInfo(verb, "", CLAIM_GROUP, kind.version, space, kind.plural, driver, "driver")
            )
            if why:
                what = "changing status.devices requires"
                yield forbidden_field(
                    "status.devices", f'{what} resource="resourceclaims/driver", verb="[{verb}]" {why}'
                )

    def _lacks(self, user: User, asked: RequestInfo) -> str:
        try:
            self._authorizer.check(user, asked)
        except ApiError as error:
            return f"permission: {error.message}"
        return ""


def _changed_drivers(new: Object, old: Object) -> set[str]:
    def by_device(status: Object) -> dict[tuple[Json, ...], Object]:
        return {tuple(one.get(name) for name in DEVICE): one for one in objects(status.get("devices"))}

    now, before = by_device(new), by_device(old)
    return {str(key[0]) for key in now.keys() | before.keys() if now.get(key) != before.get(key)}
