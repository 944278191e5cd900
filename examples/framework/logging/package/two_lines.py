"""TwoLines: says of each pod when it is tried, and when it is bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin_entry import PluginEntry

NAME = "TwoLines"


class Tried:
    """The line at PreFilter."""

    point = "preFilter"

    def __init__(self, greeting: str) -> None:
        self._greeting = greeting

    def line(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str | None:
        """What is logged; nothing where it is None."""
        return f"{self._greeting} {pod.key}"


class Bound:
    """The line at PostBind, where the node is known."""

    point = "postBind"

    def line(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str | None:
        """What is logged; nothing where it is None."""
        return f"{pod.key} is on {node_name}"


class TwoLines:
    """The plugin: it has lines logged, and neither filters nor scores."""

    name = NAME

    def __init__(self, arguments: Any) -> None:
        self.logs = (Tried(arguments.get("greeting", "trying")), Bound())

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """None: it refuses nobody."""
        return ()


TWO_LINES = PluginEntry(
    NAME,
    TwoLines,
    {"type": "object", "properties": {"greeting": {"type": "string"}}, "additionalProperties": False},
)
