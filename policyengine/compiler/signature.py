"""What a rule reads of a pod: the values that decide which pods share its columns.

Two pods with equal signatures get equal verdicts, scores and texts. A rule that reads the cluster or the time has
no signature to share: what it reads is not the pod's alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from policyengine.compiler.column import attempt
from policyengine.compiler.frame import Decision, Scalar, Scope
from policyengine.compiler.hoists import key_of
from policyengine.compiler.scalar import lower_scalar
from policyengine.compiler.walk import free_locals
from policyengine.language import ir
from policyengine.language.ir_walk import children, key, walk
from policyengine.language.types import Reach, Shape

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


class Decisions:
    """The decision about the pod asked for last, so that all rules of a policy evaluate its lets once."""

    def __init__(self) -> None:
        self._last: Decision | None = None

    def about(self, pod: PodInfo) -> Decision:
        """A decision that knows the pod and nothing else."""
        if self._last is None or self._last.pod is not pod:
            self._last = Decision(pod)
        return self._last


class Signature:
    """The pod-only subexpressions of a rule, the largest ones, each once."""

    def __init__(
        self, when: ir.Expr | None, expressions: Iterable[ir.Expr], scope: Scope, decisions: Decisions
    ) -> None:
        whole = [*([when] if when is not None else []), *expressions]
        self.shared = not any(_reads_cluster(expr, scope) for expr in whole)
        found = {key(part): part for expr in expressions for part in _pod_parts(expr, scope)}
        self._parts: tuple[Scalar, ...] = tuple(lower_scalar(part, scope) for part in found.values())
        self._when = None if when is None else lower_scalar(when, scope)
        self._decisions = decisions

    def of(self, pod: PodInfo) -> Hashable:
        """The signature. All pods the rule does not apply to share one."""
        if not self.shared:
            return _Unshared()
        decision = self._decisions.about(pod)
        applies: Any = True if self._when is None else attempt(self._when, decision)
        if applies is False:
            return False
        return applies, *(key_of(attempt(part, decision)) for part in self._parts)


class _Unshared:
    """Equal to nothing but itself: a column under it serves one decision."""


def _reads_cluster(expr: ir.Expr, scope: Scope) -> bool:
    return any(
        isinstance(part, ir.Field) and part.reach is Reach.CLUSTER
        for part in walk(expr, lambda name: scope.lets[name].value)
    )


def _pod_parts(expr: ir.Expr, scope: Scope) -> Iterator[ir.Expr]:
    if expr.shape is Shape.SCALAR and expr.reach <= Reach.POD and not free_locals(expr):
        if expr.reach is Reach.POD:
            yield expr
        return
    if isinstance(expr, ir.LetRef):
        yield from _pod_parts(scope.lets[expr.name].value, scope)
    for part in children(expr):
        yield from _pod_parts(part, scope)
