"""Labels that nodes should have or not, as the Policy API and the plugin NodeLabel wanted them: rules.

NodeLabel (pkg/scheduler/framework/plugins/nodelabel, v1.22) filters by `presentLabels` and `absentLabels`, and scores
by how many of the preferences a node meets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def label_filter(name: str, present: Iterable[str], absent: Iterable[str] = ()) -> str:
    """A filter: every label that is present must be there, and none of the absent ones."""
    tests = [f"require {_there(label)}" for label in present] + [f"require !({_there(label)})" for label in absent]
    return f"filter {json.dumps(name)} {{ {' '.join(tests)} }}"


def label_score(name: str, weight: int, present: Iterable[str], absent: Iterable[str] = ()) -> str:
    """A score: 100 where all preferences are met, 0 where none is."""
    points = [f"{_there(label)} ? 100 : 0" for label in present] + [f"{_there(label)} ? 0 : 100" for label in absent]
    value = points[0] if len(points) == 1 else f"({' + '.join(f'({one})' for one in points)}) / {len(points)}"
    return f"score {json.dumps(name)} weight {weight} = {value}"


def _there(label: str) -> str:
    return f"{json.dumps(label)} in node.labels"


def node_label(arguments: Mapping[str, Any], filters: bool, weight: int | None) -> list[str]:
    """What the plugin does, as members of a policy. `weight` None: it does not score."""
    wanted = [arguments.get(key, []) for key in ("presentLabels", "absentLabels")]
    preferred = [arguments.get(key, []) for key in ("presentLabelsPreference", "absentLabelsPreference")]
    found = [label_filter("node-label", *wanted)] if filters and any(wanted) else []
    return found + ([label_score("node-label", weight, *preferred)] if weight is not None and any(preferred) else [])
