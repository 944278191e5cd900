"""`gang "name" [when e] { key min timeout [waits] }` as a gang rule: which pods belong together.

What the author's expressions cannot say is settled so that a pod waits for no company it cannot have: a key
without a value makes the pod no member; a `min` below 1 or without a value counts as 1, and it is at most 2^31 - 1;
a `timeout` that is not positive, or without a value, counts as the default; a `waits` without a value as none, one that
is not positive as nothing. A `when` without a value counts as true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.compiler.columns.column import attempt
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.signature import Decisions
from policyengine.language import ir

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

DEFAULT_TIMEOUT = 60.0
"""Seconds; the permit wait of scheduler-plugins' Coscheduling."""
MOST_MEMBERS = 2**31 - 1


class RuleGang:
    """A gang rule of a policy."""

    def __init__(self, rule: ir.Gang, scope: Scope, decisions: Decisions) -> None:
        self._name = rule.name
        self._when = None if rule.when is None else scope.closure(rule.when)
        self._key = scope.closure(rule.key)
        self._min = scope.closure(rule.min)
        self._timeout = scope.closure(rule.timeout)
        self._waits = None if rule.waits is None else scope.closure(rule.waits)
        self._decisions = decisions

    @property
    def name(self) -> str:
        """The rule's name, as it appears in refusals."""
        return self._name

    def key(self, pod: PodInfo) -> str | None:
        """The gang the pod is a member of; None where the rule does not apply."""
        decision = self._decisions.about(pod)
        if self._when is not None and attempt(self._when, decision) is False:
            return None
        key = attempt(self._key, decision)
        return key if isinstance(key, str) else None

    def minimum(self, pod: PodInfo) -> int:
        """How many members the pod asks for, 1 or more."""
        wanted = attempt(self._min, self._decisions.about(pod))
        return min(max(wanted, 1), MOST_MEMBERS) if isinstance(wanted, int) else 1

    def timeout(self, pod: PodInfo) -> float:
        """Seconds a partial reservation may last."""
        nanoseconds = attempt(self._timeout, self._decisions.about(pod))
        return nanoseconds / 1e9 if isinstance(nanoseconds, int) and nanoseconds > 0 else DEFAULT_TIMEOUT

    def waits(self, pod: PodInfo) -> float | None:
        """Seconds the gang is to wait for room at most; None where it just waits."""
        if self._waits is None:
            return None
        nanoseconds = attempt(self._waits, self._decisions.about(pod))
        return max(nanoseconds / 1e9, 0.0) if isinstance(nanoseconds, int) else None
