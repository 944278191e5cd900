"""`preempt [when e] { victims: e order by … maxVictims: n }` as a preempt rule.

A `when` or `victims` without a value counts as false: the rule has nothing to say, the victim stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyengine.compiler.columns.column import attempt
from policyengine.compiler.columns.frame import Decision
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.queue import flat_key, key_parts
from policyengine.language import ir

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import ClusterView


class RulePreempt:
    """The preempt rule of a policy."""

    def __init__(self, rule: ir.Preempt, scope: Scope) -> None:
        self._when = None if rule.when is None else scope.closure(rule.when)
        self._victims = None if rule.victims is None else scope.closure(rule.victims)
        self._order = key_parts(rule.order, scope)
        self._most = None if rule.max_victims is None else scope.closure(rule.max_victims)

    def applies(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether the rule has anything to say about what this pod may preempt."""
        return self._when is None or attempt(self._when, Decision(pod, view.snapshot())) is True

    def may_go(self, pod: PodInfo, victim: PodInfo, view: ClusterView) -> bool:
        """Whether the victim may have to leave for the pod."""
        return self._victims is None or attempt(self._victims, _about(pod, victim, view)) is True

    def turn(self, pod: PodInfo, victim: PodInfo, view: ClusterView) -> tuple[Any, ...]:
        """The victim's key in the order of going; () where the rule gives none."""
        return flat_key(self._order, _about(pod, victim, view)) if self._order else ()

    def most(self, pod: PodInfo, view: ClusterView) -> int | None:
        """How many victims a node may take."""
        found = None if self._most is None else attempt(self._most, Decision(pod, view.snapshot()))
        return found if isinstance(found, int) else None


def _about(pod: PodInfo, victim: PodInfo, view: ClusterView) -> Decision:
    decision = Decision(pod, view.snapshot())
    decision.victim = victim
    return decision
