"""All nodes, or those of a group."""

from __future__ import annotations

from typing import Any, NamedTuple

from policyengine.server.pages import heat
from policyengine.server.pages.lists import part
from policyengine.server.pages.source import Asked, Moment

COLUMNS = 5
"""Resources that are shown."""


class Row(NamedTuple):
    """One node."""

    name: str
    group: str
    pods: int
    most_pods: int
    state: str
    amounts: dict[str, tuple[int, int, int]]
    """Resource -> (requested, allocatable, percent)."""


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows."""
    table = moment.state.view.nodes
    label, value = asked.query.get("label", ""), asked.query.get("value")
    resources = heat.offered(table)[:COLUMNS]
    columns = {name: (table.requested(name), table.allocatable(name), heat.fullness(table, name)) for name in resources}
    looked_for = asked.query.get("q", "")
    rows = [
        Row(
            name,
            group,
            table.pod_count.item(row),
            table.allowed_pods.item(row),
            _state(bool(table.ready[row]), bool(table.unschedulable[row])),
            {one: (used.item(row), there.item(row), full.item(row)) for one, (used, there, full) in columns.items()},
        )
        for name, row in sorted(table.row_of.items())
        if looked_for in name
        for group in [heat.label_of(table, row, label)]
        if value is None or not label or group == value
    ]
    keys: dict[str, Any] = {one: lambda row, one=one: row.amounts[one][2] for one in resources}
    keys |= {"node": lambda row: row.name, "pods": lambda row: row.pods, "state": lambda row: row.state}
    return {**part(rows, asked, keys), "label": label, "value": value, "resources": resources, "looked_for": looked_for}


def _state(ready: bool, cordoned: bool) -> str:
    return ", ".join([*([] if ready else ["not ready"]), *(["cordoned"] if cordoned else [])]) or "ready"
