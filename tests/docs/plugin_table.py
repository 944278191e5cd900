"""The part of docs/plugins.md that repeats the registry. `python -m tests.docs.plugin_table` writes it anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policyengine.framework.events import ActionType, ClusterEventWithHint
from policyengine.framework.plugin_entry import PluginEntry
from policyengine.plugins.registry import IN_TREE, build

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"
BEGIN = "<!-- made from the registry by `python -m tests.docs.plugin_table` -->\n"
END = "<!-- end of what is made -->\n"


def generated() -> str:
    """The table, a row a plugin in kube-scheduler's order."""
    lines = ["| plugin | filter | weight | arguments | asks a refused pod again on |", "|---|---|---|---|---|"]
    for entry in IN_TREE.values():
        weight = "" if entry.default_weight is None else str(entry.default_weight)
        link = f"[{entry.name}](#{entry.name.lower()})"
        cells = (link, "yes" if entry.filters else "", weight, _arguments(entry), _events(entry))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _arguments(entry: PluginEntry) -> str:
    properties = entry.arguments.get("properties", {})
    assert isinstance(properties, Mapping)
    return ", ".join(f"`{name}`{_values(schema)}" for name, schema in properties.items())


def _values(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " " + "/".join(schema["enum"])
    if "minimum" in schema and "maximum" in schema:
        return f" {schema['minimum']}..{schema['maximum']}"
    return ""


def _events(entry: PluginEntry) -> str:
    found: dict[str, list[str]] = {}
    for registered in getattr(build(entry.name), "events_to_register", tuple)():
        found.setdefault(registered.event.resource.value, []).extend(_actions(registered))
    return "; ".join(f"{resource} {', '.join(dict.fromkeys(actions))}" for resource, actions in found.items())


def _actions(registered: ClusterEventWithHint) -> Iterator[str]:
    action = registered.event.action
    for plain in (ActionType.ADD, ActionType.DELETE):
        if plain in action:
            yield str(plain.name).lower()
    for whole in (ActionType.UPDATE, ActionType.UPDATE_NODE, ActionType.UPDATE_POD):
        if whole in action:
            yield "update"
            return
    for part in ActionType:
        if part in action and str(part.name).startswith("UPDATE_"):
            words = str(part.name).removeprefix("UPDATE_").removeprefix("NODE_").removeprefix("POD_")
            yield words.lower().replace("_", " ")


def main() -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + generated() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
