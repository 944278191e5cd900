"""Tables: the columns `kubectl get` prints, as the server works them out.

Columns are read from `kinds/schemas/columns.txt`, or from a custom kind's `additionalPrinterColumns`. Ages are worked
out at the time of the request; a kind without columns of its own shows Name and Created At.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache, partial

from policyengine.clock import Clock
from policyengine.simulator.api_server.kinds.schema import FOLDER
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.reading.cells import CELLS, age, jsonpath
from policyengine.simulator.api_server.reading.representation import View, from_storage, only_metadata
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.store import Object, decode, encode, metadata, objects

Cell = Callable[[Object, float], Json]
Column = tuple[Object, Cell]
"""A column's definition, and what stands in it."""
GENERIC = "generic"


def _field(obj: Object, now: float, path: str, empty: Json) -> Json:
    value = jsonpath(obj, path)
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
        self.key = f"{kind.api_version}/{kind.kind};table;{include}"
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

    def frame(self, type_: str, raw: bytes) -> bytes:
        """One line of a watch; a bookmark is a Table without rows."""
        body = self._table([], metadata(decode(raw))) if type_ == "BOOKMARK" else self.object(raw)
        return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"
