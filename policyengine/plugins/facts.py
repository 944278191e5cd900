"""What the checker is told of the plugins in the tree, as data: the plugins themselves take long to import.

`facts.json` repeats the registry; `python -m policyengine.plugins.facts` writes it anew, a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from policyengine.language.checking.plugin_checks import PluginFacts

FILE = Path(__file__).with_name("facts.json")


@cache
def plugin_facts() -> Mapping[str, PluginFacts]:
    """Every plugin in the tree by name, in kube-scheduler's order."""
    table: dict[str, dict[str, Any]] = json.loads(FILE.read_bytes())
    return {name: PluginFacts(**facts) for name, facts in table.items()}


def generated() -> str:
    """The text of `facts.json`, from the registry."""
    from policyengine.plugins.registry import IN_TREE

    table = {
        entry.name: {
            "arguments": entry.arguments,
            "filters": entry.filters,
            "scores": entry.scores,
            "default_weight": entry.default_weight,
        }
        for entry in IN_TREE.values()
    }
    return json.dumps(table, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(generated(), encoding="utf-8")
