"""Tables: the columns `kubectl get` prints, as the server works them out.

Column definitions are read from `kinds/schemas/columns.txt`; cells come from `cells.py`. Ages are worked out at the
time of the request; a kind without columns of its own shows Name and Created At.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import cast

from policyengine.clock import Clock
from policyengine.simulator.api_server.kinds.schema import FOLDER
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.reading.cells import AGE, CELLS, NAME, Cell, age, field, jsonpath
from policyengine.simulator.api_server.reading.representation import View, from_storage, partial
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.store import Object, decode, encode, metadata, objects

GENERIC = "generic"
SAME_COLUMNS = {"events.k8s.io/v1/events": "core/v1/events"}


@cache
def _definitions() -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    current = ""
    for line in (FOLDER / "columns.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            current = line
            found[current] = []
            continue
        name, type_, format_, priority, description = line.strip().split("|", 4)
        found[current].append(
            {
                "name": name,
                "type": type_,
                "format": format_,
                "description": cast(str, json.loads(f'"{description}"')),
                "priority": int(priority),
            }
        )
    return found


def columns(kind: Kind) -> list[Object]:
    """The column definitions of a kind."""
    if kind.custom is None:
        key = f"{kind.schema_home}/{kind.plural}"
        found = _definitions()
        return found.get(SAME_COLUMNS.get(key, key)) or found[GENERIC]
    name, created = _definitions()[GENERIC]
    shown = [
        {
            "name": column.get("name"),
            "type": column.get("type"),
            "format": column.get("format") or "",
            "description": column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column.get('jsonPath', '')}",
            "priority": column.get("priority") or 0,
        }
        for column in printer_columns(kind)
    ]
    return [name, *(shown or [{**created, "name": "Age"}])]


def cells(kind: Kind, count: int) -> Sequence[Cell]:
    """What stands in each column; a built-in kind that `CELLS` does not list shows its name and age."""
    if kind.custom is not None:
        shown = [_custom_cell(column) for column in printer_columns(kind)]
        return [NAME, *(shown or [AGE])]
    known = CELLS.get(kind.kind)
    if known is not None:
        return known
    if columns(kind) is _definitions()[GENERIC]:
        return [NAME, field(".metadata.creationTimestamp", None)]
    return [NAME, *[_blank] * (count - 2), AGE]


def printer_columns(kind: Kind) -> list[Object]:
    """A custom kind's `additionalPrinterColumns`."""
    return objects((kind.custom or {}).get("additionalPrinterColumns"))


def _custom_cell(column: Object) -> Cell:
    path = str(column.get("jsonPath", ""))
    return age(path) if column.get("type") == "date" else lambda obj, now: jsonpath(obj, path)


def _blank(obj: Object, now: float) -> Json:
    return ""


class TableView(View):
    """A kind as a Table; `include` is what each row carries: Metadata, Object or None."""

    content_type = "application/json"

    def __init__(self, kind: Kind, clock: Clock, include: str) -> None:
        super().__init__(kind)
        self.key = f"{kind.api_version}/{kind.kind};table;{include}"
        self._clock = clock
        self._include = include
        self._columns: list[Json] = [*columns(kind)]
        self._shown = cells(kind, len(self._columns))

    def _cells(self, obj: Object) -> list[Json]:
        now = self._clock.now()
        return [cell(obj, now) for cell in self._shown]

    def _row(self, raw: bytes) -> Json:
        obj = decode(raw)
        row: dict[str, Json] = {"cells": self._cells(obj)}
        if self._include == "Metadata":
            row["object"] = partial(obj)
        elif self._include == "Object":
            row["object"] = {**self.kind.type_meta(), **from_storage(self.kind, obj)}
        return row

    def _table(self, rows: list[Json], meta: dict[str, Json]) -> bytes:
        head: dict[str, Json] = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
        return encode({**head, "columnDefinitions": self._columns, "rows": rows})

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
