"""How stored objects go out: as JSON of one version, as YAML, or as a Table (`tables.py`).

A `View` turns stored bytes into an object, a list or a watch line. Plain JSON never decodes: the type's name is put
in front of the stored bytes, and the result is shared by all watchers of that view. Only Events have two versions: they
are stored as core/v1 and also served as events.k8s.io/v1, with other names for the same fields.
"""

from collections.abc import Callable, Iterable

import yaml

from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import Json, not_acceptable_representations, unknown_representation
from policyengine.simulator.api_server.store import Object, decode, encode

Convert = Callable[[Object], Object]


class View:
    """Plain JSON of one kind."""

    content_type = "application/json"

    def __init__(self, kind: Kind, convert: Convert | None = None) -> None:
        self.kind = kind
        self.key = f"{kind.api_version}/{kind.kind}"
        self._prefix = encode(kind.type_meta())[:-1] + b","
        self._convert = convert

    def _stored(self, raw: bytes) -> bytes:
        return raw if self._convert is None else encode(self._convert(decode(raw)))

    def object(self, raw: bytes) -> bytes:
        """One object as sent."""
        return self._prefix + self._stored(raw)[1:]

    def items(self, raws: Iterable[bytes]) -> bytes:
        """List items: without their type, which the list says, except for custom resources."""
        return b",".join(map(self._stored if self.kind.custom is None else self.object, raws))

    def whole_list(self, raws: Iterable[bytes], meta: dict[str, Json]) -> bytes:
        """A whole list."""
        head = encode({"kind": f"{self.kind.kind}List", "apiVersion": self.kind.api_version, "metadata": meta})
        return head[:-1] + b',"items":[' + self.items(raws) + b"]}"

    def frame(self, type_: str, raw: bytes) -> bytes:
        """One line of a watch."""
        return b'{"type":"' + type_.encode() + b'","object":' + self.object(raw) + b"}\n"


class YamlView(View):
    """Plain YAML of one kind, keys in order."""

    content_type = "application/yaml"

    def object(self, raw: bytes) -> bytes:
        """One object as sent."""
        return _yaml(super().object(raw))

    def whole_list(self, raws: Iterable[bytes], meta: dict[str, Json]) -> bytes:
        """A whole list; each item says its type."""
        empty = super().whole_list((), meta)
        return _yaml(empty[:-2] + b",".join(map(super().object, raws)) + empty[-2:])

    def frame(self, type_: str, raw: bytes) -> bytes:
        """One line of a watch, which stays JSON."""
        return b'{"type":"' + type_.encode() + b'","object":' + super().object(raw) + b"}\n"


def _yaml(raw: bytes) -> bytes:
    return yaml.dump(decode(raw), Dumper=yaml.SafeDumper, default_flow_style=False, allow_unicode=True).encode()


def only_metadata(obj: Object) -> dict[str, Json]:
    """An object cut down to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


REPRESENTATIONS = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)


def wanted(accept: str, streams: bool = True) -> str:
    """What an Accept header asks for: `json`, `table` or `yaml`; raises a 406.

    Protobuf is not written; every Kubernetes client that asks for it also takes JSON.
    """
    if not accept:
        return "json"
    for part in accept.split(","):
        media, *parameters = [word.strip() for word in part.split(";")]
        given = dict(word.partition("=")[::2] for word in parameters)
        shape = given.get("as", "")
        if media in ("application/json", "application/*", "*/*"):
            if shape.startswith("Table") and given.get("v", "v1") == "v1":
                return "table"
            if not shape:
                return "json"
            raise unknown_representation(REPRESENTATIONS[:3])
        if media == "application/yaml" and not shape:
            return "yaml"
    raise not_acceptable_representations(REPRESENTATIONS if streams else REPRESENTATIONS[:3])


# events.k8s.io/v1 name -> core/v1 name
EVENT_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
CORE_NAMES = {core: new for new, core in EVENT_NAMES.items()}
# Fields that one version always writes and the other leaves out when empty.
CORE_ALWAYS: dict[str, Json] = {"reportingComponent": "", "reportingInstance": ""}


def _event_to_core(obj: Object) -> Object:
    out = {EVENT_NAMES.get(name, name): value for name, value in obj.items()}
    return {**out, **{name: out.get(name, empty) for name, empty in CORE_ALWAYS.items()}}


def _event_from_core(obj: Object) -> Object:
    out = {CORE_NAMES.get(name, name): value for name, value in obj.items()}
    for name in ("reportingController", "reportingInstance"):
        if out.get(name) == "":
            del out[name]
    return out


def to_storage(kind: Kind, obj: Object) -> Object:
    """An object of `kind` as it is stored."""
    return _event_to_core(obj) if kind.group == "events.k8s.io" else obj


def converter_for(kind: Kind) -> Convert | None:
    """How to show stored objects as `kind`; None where they lie in its version."""
    return _event_from_core if kind.group == "events.k8s.io" else None


def from_storage(kind: Kind, obj: Object) -> Object:
    """A stored object as `kind` shows it."""
    converter = converter_for(kind)
    return converter(obj) if converter else obj
