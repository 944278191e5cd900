"""What a configuration asks for, before it is written as a policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DEFAULT_SCHEDULER = "default-scheduler"


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
