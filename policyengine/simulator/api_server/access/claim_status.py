"""Who may write which part of a ResourceClaim's status: allocating and reporting devices need rights of their own.

Beside `resourceclaims/status`, Kubernetes 1.36 asks for the same verb on `resourceclaims/binding`, in the whole
cluster, where `allocation` or `reservedFor` change, and for `arbitrary-node:` and the verb on `resourceclaims/driver`,
by the driver's name, where `devices` do (pkg/registry/resource/utils.go). A token here belongs to no node.
"""

from collections.abc import Iterator

from policyengine.simulator.api_server.access.rbac import Authorizer
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import RequestInfo, User
from policyengine.simulator.api_server.statuses import ApiError, Cause, Json, invalid
from policyengine.simulator.api_server.storage.store import Object, child, metadata, objects
from policyengine.simulator.api_server.validation.metadata import forbidden

GROUP = "resource.k8s.io"
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
            raise invalid(kind.kind, GROUP, str(metadata(old)["name"]), causes)

    def _causes(self, kind: Kind, new: Object, old: Object, meta: Object, user: User, verb: str) -> Iterator[Cause]:
        if any(new.get(name) != old.get(name) for name in ("allocation", "reservedFor")):
            why = self._lacks(user, RequestInfo(verb, "", GROUP, kind.version, "", kind.plural, "", "binding"))
            what = "changing status.allocation or status.reservedFor requires"
            if why:
                yield forbidden("status.allocation", f'{what} resource="resourceclaims/binding", verb="{verb}" {why}')
        if new.get("allocation") is None:
            return
        verb = f"arbitrary-node:{verb}"
        for driver in sorted(_changed_drivers(new, old)):
            space = str(meta.get("namespace") or "")
            why = self._lacks(user, RequestInfo(verb, "", GROUP, kind.version, space, kind.plural, driver, "driver"))
            if why:
                what = "changing status.devices requires"
                yield forbidden("status.devices", f'{what} resource="resourceclaims/driver", verb="[{verb}]" {why}')

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
