"""How stored objects go out: as JSON of one version, as YAML, or as a Table, the columns that `kubectl get` prints.

A `View` turns stored bytes into an object, a list or a watch line. Plain JSON never decodes: the type's name is put
in front of the stored bytes, and the result is shared by all watchers of that view. Only Events have two versions: they
are stored as core/v1 and also served as events.k8s.io/v1, with other names for the same fields.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache, partial

import yaml

from policyengine.clock import Clock
from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.reading.cells import CELLS, age, jsonpath
from policyengine.simulator.api_server.statuses import ApiError, Json
from policyengine.simulator.api_server.storage import Object, decode, encode, metadata, objects

Convert = Callable[[Object], Object]


class View:
    """Plain JSON of one kind."""

    content_type = "application/json"

    def __init__(self, kind: Kind, convert: Convert | None = None) -> None:
        self.kind = kind
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
        """One line of a watch, which is JSON in every view."""
        return b'{"type":"' + type_.encode() + b'","object":' + self.shown(type_, raw) + b"}\n"

    def shown(self, type_: str, raw: bytes) -> bytes:
        """The object of a line."""
        return View.object(self, raw)


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
            text = f"only the following media types are accepted: {', '.join(REPRESENTATIONS[:3])}"
            raise ApiError(406, "NotAcceptable", text)
        if media == "application/yaml" and not shape:
            return "yaml"
    available = ", ".join(REPRESENTATIONS if streams else REPRESENTATIONS[:3])
    raise ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})


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


# Tables: columns are read from `kinds/schemas/columns.txt`, or from a custom kind's `additionalPrinterColumns`

Cell = Callable[[Object, float], Json]
Column = tuple[Object, Cell]
"""A column's definition, and what stands in it."""
GENERIC = "generic"


def _field(obj: Object, now: float, path: str, empty: Json) -> Json:
    value = jsonpath(obj, path)
    if isinstance(value, list | dict):
        return encode(value).decode()
    return empty if value in (None, "") else value


def _cell(text: str) -> Cell:
    word, *arguments = text.split(" ")
    if word.startswith("."):
        return partial(_field, path=word, empty=json.loads(arguments[0]) if arguments else "")
    found = CELLS.get(word)
    return (lambda obj, now: found(obj, now, *arguments)) if found else (lambda obj, now: "")


@cache
def _built_in() -> dict[str, list[Column]]:
    found: dict[str, list[Column]] = {}
    current = ""
    for line in (FOLDER / "columns.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            name, type_, format_, priority, cell, text = line.strip().split("|", 5)
            described = json.loads(f'"{text}"')
            head: Object = {"name": name, "type": type_, "format": format_, "description": described}
            found[current].append(({**head, "priority": int(priority)}, _cell(cell)))
        elif not line.startswith("#"):
            current = line
            found[current] = []
    return found


def columns(kind: Kind) -> list[Column]:
    """What is printed of a kind."""
    if kind.custom is None:
        # Both versions of an Event are shown alike.
        home = "core/v1" if kind.kind == "Event" else kind.schema_home
        return _built_in().get(f"{home}/{kind.plural}") or _built_in()[GENERIC]
    name, (created, _) = _built_in()[GENERIC]
    own = [_custom(column) for column in objects(kind.custom.get("additionalPrinterColumns"))]
    return [name, *(own or [({**created, "name": "Age"}, age)])]


def _custom(column: Object) -> Column:
    path = str(column.get("jsonPath", ""))
    unsaid = f"Custom resource definition column (in JSONPath format): {path}"
    head = {"name": column.get("name"), "type": column.get("type"), "format": column.get("format") or ""}
    text = column.get("description") or unsaid
    cell = partial(age, path=path) if column.get("type") == "date" else partial(_field, path=path, empty=None)
    return {**head, "description": text, "priority": column.get("priority") or 0}, cell


class TableView(View):
    """A kind as a Table; `include` is what each row carries: Metadata, Object or None."""

    content_type = "application/json"

    def __init__(self, kind: Kind, clock: Clock, include: str) -> None:
        super().__init__(kind)
        self._clock = clock
        self._include = include
        self._columns = columns(kind)

    def _row(self, raw: bytes) -> Json:
        obj = decode(raw)
        now = self._clock.now()
        row: dict[str, Json] = {"cells": [cell(obj, now) for _, cell in self._columns]}
        if self._include == "Metadata":
            row["object"] = only_metadata(obj)
        elif self._include == "Object":
            row["object"] = {**self.kind.type_meta(), **from_storage(self.kind, obj)}
        return row

    def _table(self, rows: list[Json], meta: dict[str, Json]) -> bytes:
        head: dict[str, Json] = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
        return encode({**head, "columnDefinitions": [column for column, _ in self._columns], "rows": rows})

    def object(self, raw: bytes) -> bytes:
        """One object as a Table of one row."""
        version = str(metadata(decode(raw)).get("resourceVersion") or "")
        return self._table([self._row(raw)], {"resourceVersion": version})

    def whole_list(self, raws: Iterable[bytes], meta: dict[str, Json]) -> bytes:
        """A list as a Table."""
        head = self._table([], meta)
        return head[:-2] + self.items(raws) + head[-2:]

    def items(self, raws: Iterable[bytes]) -> bytes:
        """Rows."""
        return b",".join([encode(self._row(raw)) for raw in raws])

    def shown(self, type_: str, raw: bytes) -> bytes:
        """A Table; of a bookmark one without rows."""
        return self._table([], metadata(decode(raw))) if type_ == "BOOKMARK" else self.object(raw)
