"""What a rule reads of a pod, and of the cluster as a whole: the values that decide which decisions share its columns.

Two pods with equal signatures get equal verdicts, scores and texts for as long as the situation is the same: what
the rule reads of the cluster, the time, the pod's gang or group. A column is kept for a signature, and computed again
when the situation is another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from policyengine.compiler.columns.column import attempt
from policyengine.compiler.columns.frame import Decision, Scalar
from policyengine.compiler.lower.hoists import key_of
from policyengine.compiler.lower.list_aggregates import NOMINEE
from policyengine.compiler.lower.scope import Scope
from policyengine.language import ir
from policyengine.language.ir.ir_walk import children, free_locals, is_cluster_list, key
from policyengine.language.types import Reach, Shape

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot

Situation = Callable[["PodInfo", "Snapshot"], Hashable]


class Decisions:
    """Remembers the last pod's decision, so that the rules of a policy evaluate its lets once."""

    def __init__(self) -> None:
        self._last: Decision | None = None

    def about(self, pod: PodInfo) -> Decision:
        """A decision that knows the pod and nothing else."""
        if self._last is None or self._last.pod is not pod:
            self._last = Decision(pod)
        return self._last


class Signature:
    """The subexpressions of a rule that read the pod alone, and those that read the cluster: the largest, each once."""

    def __init__(
        self, when: ir.Expr | None, expressions: Iterable[ir.Expr], scope: Scope, decisions: Decisions
    ) -> None:
        asked = list(expressions)
        of_pod = when is not None and when.reach <= Reach.POD
        self._when = scope.closure(when) if when is not None and of_pod else None
        whole = asked if when is None else [when, *asked]
        parts = Parts(scope)
        for expr in whole:
            if expr is not when or not of_pod:
                parts.collect(expr)
        self._parts = tuple(scope.closure(part) for part in parts.of_pod.values())
        self._wider = tuple(scope.closure(part) for part in parts.of_cluster.values())
        self._shared = parts.are_values
        self._decisions = decisions
        self.situation: Situation | None = self._situation if self._wider else None
        """What the rule reads of the cluster, as a value to compare; None where it reads nothing of it."""

    def of(self, pod: PodInfo) -> Hashable:
        """The signature. All pods the rule does not apply to share one."""
        if not self._shared:
            return _Unshared()
        decision = self._decisions.about(pod)
        applies: Any = True if self._when is None else attempt(self._when, decision)
        if applies is False:
            return False
        return applies, *_values(self._parts, decision)

    def _situation(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        return _values(self._wider, Decision(pod, snapshot))


def _values(parts: tuple[Scalar, ...], decision: Decision) -> tuple[Hashable, ...]:
    return tuple(key_of(attempt(part, decision)) for part in parts)


class _Unshared:
    """Equal to nothing but itself: a column under it serves one decision."""


class Parts:
    """The largest parts that are the same for all nodes, by what they read."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.of_pod: dict[Hashable, ir.Expr] = {}
        self.of_cluster: dict[Hashable, ir.Expr] = {}
        self.are_values = True
        """Whether everything read of the cluster is among them; not so where a list is asked about a variable."""
        self._seen: set[str] = set()

    def collect(self, expr: ir.Expr, inside: bool = False) -> None:
        """Add the parts of an expression. `inside`: it is part of one that is among those of the cluster already."""
        if expr.reach is Reach.CONSTANT:
            return
        if expr.shape is Shape.SCALAR and not free_locals(expr):
            if expr.reach is Reach.POD:
                self.of_pod[key(expr)] = expr
            if expr.reach <= Reach.POD:
                return
            if not inside and is_cluster_list(expr, self._scope.let_value):
                self.are_values = False
            elif not inside:
                self.of_cluster[key(expr)] = expr
                inside = True
        if isinstance(expr, ir.Field) and expr.path == ("node", "nominated"):
            self.of_pod[key(NOMINEE)] = NOMINEE
        if isinstance(expr, ir.LetRef) and expr.name not in self._seen:
            self._seen.add(expr.name)
            self.collect(self._scope.lets[expr.name].value, inside)
        for part in children(expr):
            self.collect(part, inside)
