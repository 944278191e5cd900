"""What a configuration asks for, and the same as the text of a policy: what differs from kube-scheduler's defaults, and
a note for the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.control_characters import escaped
from policyengine.language.diagnostics import Source
from policyengine.language.format import format_source


@dataclass(slots=True)
class WantedPlugin:
    """One in-tree plugin as a profile has it."""

    filters: bool
    """Whether it filters; for a plugin without a filter, whether it is there at all."""
    weight: int | None
    """Of its score; None where it does not score."""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class WantedProfile:
    """One profile."""

    scheduler_name: str
    plugins: dict[str, WantedPlugin]
    """By name; a plugin that is switched off is absent."""
    rules: list[str] = field(default_factory=list)
    """Members of the policy that stand for something no plugin does, as text."""
    counts_quotas: bool = False
    """Whether it heeds ElasticQuotas."""
    notes: list[str] = field(default_factory=list)
    """What has no equivalent, a sentence each."""
    queue: str = ""
    """What stands in its `queue`, as text, besides the backoff."""
    backoff: tuple[float, float] | None = None
    """Seconds, where they are not the default."""


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset({"in", "true", "false", "null"})


def policy_text(wanted: WantedProfile, registry: PluginRegistry) -> str:
    """The policy in the one style, its notes above it."""
    members = [f"scheduler {_text(wanted.scheduler_name)}"]
    queue = [wanted.queue] if wanted.queue else []
    if wanted.backoff is not None:
        initial, longest = wanted.backoff
        queue.append(f"backoff {_seconds(initial)} .. {_seconds(longest)}")
    if queue:
        members.append(f"queue {{ {' '.join(queue)} }}")
    for name, entry in registry.items():
        if not entry.in_base:
            continue
        plugin = wanted.plugins.get(name)
        if plugin is None:
            members.append(f"disable {name}")
            continue
        weight = 0 if entry.scores and plugin.weight is None else plugin.weight
        changed = "" if weight == entry.default_weight else f" weight {weight}"
        arguments = f" {_literal(plugin.arguments)}" if plugin.arguments else ""
        if changed or arguments:
            members.append(f"use {name}{changed}{arguments}")
    members += wanted.rules
    notes = [f"// note: {escaped(note)}" for note in dict.fromkeys(wanted.notes)]
    written = "\n".join([*notes, f"policy {_text(wanted.scheduler_name)} {{", *members, "}"]) + "\n"
    formatted, _ = format_source(Source("<converted>", written))
    return formatted


def _seconds(seconds: float) -> str:
    return f"{int(seconds)}s" if seconds == int(seconds) else f"{round(seconds * 1000)}ms"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return _text(value)
        case Mapping():
            return "{" + ", ".join(f"{_key(key)}: {_literal(inner)}" for key, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_literal(inner) for inner in value if inner is not None) + "]"
        case _:
            return "{}"


def _key(key: str) -> str:
    return key if _NAME.match(key) and key not in _RESERVED else _text(key)
