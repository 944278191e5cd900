"""Fields an object can be selected by (`fieldSelector`), and how their values read as strings.

The lists are those of the kinds' field label conversions; every kind has metadata.name and metadata.namespace.
"""

from typing import cast

from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.reading.selectors import FieldReader, FieldSelector
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request
from policyengine.simulator.api_server.storage.store import Object

ALWAYS = ("metadata.name", "metadata.namespace")
EVENT_FIELDS = (
    *(
        f"involvedObject.{n}"
        for n in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    *("reason", "reportingComponent", "source", "type"),
)
SELECTABLE: dict[str, tuple[str, ...]] = {
    "Pod": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase", "name"),
    "Event": EVENT_FIELDS,
    "Secret": ("type",),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "Job": ("status.successful",),
    "Service": ("spec.clusterIP", "spec.type"),
    "CertificateSigningRequest": ("spec.signerName",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
}
# ReplicaSets have no conversion of their own for field labels, so the shared one answers.
FIELDS_OF_STRATEGY = frozenset({"ReplicaSet"})
MOVED = {"reportingComponent": "reportingComponent", "source": "source.component", "name": "metadata.name"}


def check(kind: Kind, selector: FieldSelector) -> None:
    """Raise the 400 of a field this kind cannot be selected by."""
    allowed = SELECTABLE.get(kind.kind, ())
    if kind.custom is not None:
        listed = kind.custom.get("selectableFields")
        rows = listed if isinstance(listed, list) else []
        allowed = tuple(str(row.get("jsonPath", "")).lstrip(".") for row in rows if isinstance(row, dict))
    for term in selector:
        if term.path not in ALWAYS and term.path not in allowed:
            raise _unsupported(kind, term.path)


def _unsupported(kind: Kind, path: str) -> ApiError:
    """400, in the words of the kind's own conversion, or of the one all others share."""
    if kind.kind == "Job":
        return bad_request(f'field label "{path}" not supported for Job')
    if kind.kind == "ResourceSlice":
        return bad_request(f"field label not supported for {kind.api_version}, Kind={kind.kind}: {path}")
    if kind.kind in SELECTABLE and kind.kind not in FIELDS_OF_STRATEGY:
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels."""
    meta = cast(Object, obj["metadata"])
    return cast("dict[str, str]", meta.get("labels") or {})


def reader(obj: Object) -> FieldReader:
    """A function from a field's path to its value as a string, empty for an absent one."""

    def read(path: str) -> str:
        value: Json = obj
        for part in MOVED.get(path, path).split("."):
            if not isinstance(value, dict):
                return ""
            value = value.get(part)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None:
            # A selector compares with what an unset boolean would print.
            return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
        return str(value)

    return read
