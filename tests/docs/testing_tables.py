"""The parts of docs/testing.md that repeat the schema. `python -m tests.docs.testing_tables` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policyengine.commands.testing.suite import schema
from policyengine.language.checking.given_objects import FOLLOWS, NODE_FIELDS, POD_FIELDS, form
from policyengine.language.schema import OBJECTS
from policyengine.language.types import Kind, Type

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
BEGIN = "<!-- {} made by `python -m tests.docs.testing_tables` -->\n"
END = "<!-- end of what is made -->\n"


def given_table() -> str:
    """The fields of given nodes and pods."""
    lines = ["| field | of | value |", "|---|---|---|"]
    for name in sorted(NODE_FIELDS.keys() | POD_FIELDS.keys()):
        of = [kind for kind, fields in (("node", NODE_FIELDS), ("pod", POD_FIELDS)) if name in fields]
        type_: Type = NODE_FIELDS[name] if name in NODE_FIELDS else POD_FIELDS[name]
        lines.append(f"| `{name}` | {', '.join(of)} | {form(type_)}{_parts(type_)} |")
    lines.append("")
    for kind, why in FOLLOWS.items():
        lines += [f"- `{name}` of a {kind} is not given: it {reason}." for name, reason in why.items()]
    return "\n".join(lines) + "\n"


def _parts(type_: Type) -> str:
    inner = type_.args[0] if type_.kind in (Kind.LIST, Kind.OPTIONAL) else type_
    if inner.kind is not Kind.OBJECT or inner.name in ("resources", "limits"):
        return ""
    return f": {', '.join(f'`{field}`' for field in OBJECTS[inner.name].fields)}"


def suite_table() -> str:
    """The keys of suites."""
    found = schema()
    parts = [("the suite", found), *((f"a {name}", found["$defs"][name]) for name in ("test", "step", "expectation"))]
    lines: list[str] = []
    for title, part in parts:
        lines += [
            f"Keys of {title.replace('a expectation', 'an expectation')}:",
            "",
            "| key | value | |",
            "|---|---|---|",
        ]
        lines += list(_rows(part["properties"], part.get("required", ())))
        lines.append("")
    return "\n".join(lines)


def _rows(properties: Mapping[str, Any], required: Any) -> Iterator[str]:
    for name, value in properties.items():
        mark = " (required)" if name in required else ""
        yield f"| `{name}`{mark} | {_kind(value)} | {value.get('description', '')} |"


def _kind(value: Mapping[str, Any]) -> str:
    if "const" in value:
        return f"`{str(value['const']).lower()}`"
    if "$ref" in value:
        return {"params": "map of values", "nodes": "map of maps", "pods": "map of maps"}.get(
            value["$ref"].rsplit("/", 1)[1], "int, or `{atLeast, atMost}`"
        )
    if "oneOf" in value:
        return "`true`, or a map"
    if isinstance(value["type"], list):
        return "text, or `null`"
    return {"string": "text", "array": "list", "object": "map"}[value["type"]]


TABLES = {"fields": given_table, "suites": suite_table}


def written(page: str) -> str:
    """The page with its tables made anew."""
    for name, table in TABLES.items():
        begin = BEGIN.format(name)
        before, rest = page.split(begin)
        page = f"{before}{begin}{table()}{END}{rest.split(END, 1)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
