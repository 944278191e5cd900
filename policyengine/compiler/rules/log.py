"""`on POINT [when e] log "…"` and `bind { annotations: {…} }`: texts about a pod, on its node once that is chosen.

A `when` without a value counts as false. A part of a text that has no value shows why in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.placed import PlacedText, PlacedValue
from policyengine.language import ir

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot


class RuleLog:
    """A line of a policy to log at an extension point."""

    def __init__(self, rule: ir.OnLog, scope: Scope) -> None:
        self.point = rule.point
        self._when = None if rule.when is None else PlacedValue(rule.when, scope)
        self._text = PlacedText(rule.message, scope)

    def line(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str | None:
        """The line to log; None where the rule does not apply."""
        if self._when is not None and self._when.of(pod, node_name, snapshot) is not True:
            return None
        return self._text.of(pod, node_name, snapshot)


class RuleAnnotation:
    """An annotation of a policy, written with the binding."""

    def __init__(self, rule: ir.BindAnnotation, scope: Scope) -> None:
        self.key = rule.key
        self._text = PlacedText(rule.value, scope)

    def value(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str:
        """What is written."""
        return self._text.of(pod, node_name, snapshot)
