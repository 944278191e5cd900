"""The part of docs/language.md that repeats the schema. `python -m tests.docs.schema_tables` writes it anew."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from policyengine.language.attributes import SMALL_OBJECTS, Attribute
from policyengine.language.schema import OBJECTS, ROOTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
BEGIN = "<!-- made from the schema by `python -m tests.docs.schema_tables` -->\n"
END = "<!-- end of what is made -->\n"
PARTS = ("finishedPod", "domain", *(info.name for info in SMALL_OBJECTS))
"""The things that share one table."""


def tables() -> str:
    """The names a rule begins with, then the fields of each thing: name, type, meaning."""
    found = [_table("name", ((root.name, root) for root in ROOTS.values()))]
    for info in OBJECTS.values():
        if info.name in PARTS:
            continue
        again = OBJECTS["pod"].fields if info.name == "clusterPod" else {}
        more = ": the fields of `pod` but `queuedAt` and `attempts`, and" if again else ""
        own = {**info.fields, **info.methods}
        rows = _table("field", ((name, field) for name, field in own.items() if name not in again))
        found.append(f"`{info.name}`, {info.doc}{more}\n\n{rows}")
    parts = ((f"{name}.{field.name}", field) for name in PARTS for field in OBJECTS[name].fields.values())
    return "\n".join([*found, f"The parts of these\n\n{_table('field', parts)}"])


def _table(head: str, rows: Iterable[tuple[str, Attribute]]) -> str:
    lines = [f"| {head} | type | |", "|---|---|---|"]
    for name, field in rows:
        type_ = f"optional({field.type})" if field.optional else str(field.type)
        lines.append(f"| `{name}` | `{type_}` | {field.doc} |")
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """The page with its tables made anew."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
