"""What the policies of a ConfigMap or SchedulingPolicy may do, as `policies.allow` of the configuration says. Pure.

    allow:
    - from: [team-a]
      schedulerNames: [team-a, team-a-*]
      annotations: [team-a.example.com/*]

Rules:
1. An object may do what the entries that name it allow, and nothing else. Its kind makes no difference.
2. `*` at the end stands for any rest. It never stands for `default-scheduler`, nor alone for annotations that belong to
   Kubernetes or to this scheduler: an entry names these, or their domain.
3. Files are the operator's own; nobody asks what they may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME

_RESERVED: Final = ("kubernetes.io", "k8s.io", "policyengine.io")
"""Domains of annotations that others act upon; their subdomains too."""


class Allowed(NamedTuple):
    """What one object may do."""

    name: str
    scheduler_names: tuple[str, ...]
    annotations: tuple[str, ...]

    def refusal(self, scheduler: str, annotations: Iterable[str]) -> str:
        """Why a policy may not serve this scheduler name, or not write one of these annotations; empty if it may."""
        if not any(_matches(one, scheduler, scheduler != DEFAULT_SCHEDULER_NAME) for one in self.scheduler_names):
            return self._told(f"serve scheduler `{scheduler}`", "schedulerNames")
        for key in annotations:
            if not any(_matches(one, key, one != "*" or not _is_reserved(key)) for one in self.annotations):
                return self._told(f"write annotation `{key}`", "annotations")
        return ""

    def _told(self, what: str, field: str) -> str:
        return f"`{self.name}` may not {what}: `policies.allow` of the configuration names who may, under `{field}`"


def allowed(name: str, allow: Sequence[Mapping[str, Any]]) -> Allowed:
    """What the entries of `policies.allow` allow the object of that name."""
    ours = [one for one in allow if any(_matches(pattern, name) for pattern in one["from"])]
    return Allowed(
        name,
        tuple(pattern for one in ours for pattern in one["schedulerNames"]),
        tuple(pattern for one in ours for pattern in one["annotations"]),
    )


def _matches(pattern: str, text: str, may_stand_for: bool = True) -> bool:
    """Whether they are equal, or the pattern's `*` may stand for the rest of the text and does."""
    if pattern.endswith("*"):
        return may_stand_for and text.startswith(pattern[:-1])
    return pattern == text


def _is_reserved(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _RESERVED)
