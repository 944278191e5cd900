"""What the rules of a policy say, by the naive interpreter and docs/language.md alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from tests.compiler.naive import Place, evaluate
from tests.compiler.naive_objects import TheNode, ThePod
from tests.compiler.naive_text import shown
from tests.compiler.naive_values import Nothing, NoValue, Some

FAILED = object()
"""The value of an expression that has none."""
EVICTABLE = frozenset({"used", "free", "podCount", "pods", "nominated", "finished", "domain"})
"""Fields of a node that an eviction could change; lists of all nodes and pods besides."""


@dataclass(frozen=True)
class Refusal:
    """Why a node, or the pod as a whole, is refused."""

    rule: str
    evictable: bool
    reason: str
    """How the reason begins."""


@dataclass
class NaivePolicy:
    """A policy in which nothing is left to put in its place but lets and params."""

    policy: ir.Policy
    hash: str = ""

    def __post_init__(self) -> None:
        self.lets = {let.name: let.value for let in self.policy.lets}
        self.params = {param.name: param.default for param in self.policy.params}

    def place(self, pod: ThePod, node: TheNode | None = None, **more: Any) -> Place:
        about = {"name": self.policy.name, "hash": self.hash}
        return Place(pod, node, self.lets, self.params, about, **more)

    def value(self, expr: ir.Expr | None, at: Place) -> Any:
        try:
            return FAILED if expr is None else evaluate(expr, at)
        except NoValue:
            return FAILED

    def reads(self, expr: ir.Expr) -> list[ir.Expr]:
        return list(walk(expr, self.lets.get))

    def reads_node(self, expr: ir.Expr) -> bool:
        return any(isinstance(part, ir.Field) and part.path[0] == "node" for part in self.reads(expr))

    def is_evictable(self, expr: ir.Expr) -> bool:
        paths = [part.path for part in self.reads(expr) if isinstance(part, ir.Field)]
        return any(p[0] in ("nodes", "pods") or (p[0] == "node" and p[1] in EVICTABLE) for p in paths)

    def applies(self, when: ir.Expr | None, at: Place, failed: bool) -> bool:
        """Whether a rule is for the pod; `failed` where its `when` has no value."""
        value = True if when is None else self.value(when, at)
        return failed if value is FAILED else bool(value)

    def text(self, template: ir.Template, at: Place) -> str:
        """A text with its expressions filled in, up to the first without a value."""
        found = ""
        for part in template.parts:
            value = part if isinstance(part, str) else self.value(part, at)
            if value is FAILED:
                return f"{found}("
            found += part if isinstance(part, str) else shown(value, part.type)
        return found

    # --- filters -------------------------------------------------------------------------------------------

    def _unmet(self, rule: ir.Filter, require: ir.Require, at: Place) -> Refusal | None:
        value = self.value(require.condition, at)
        if value is FAILED and require.on_error is not None:
            value = self.value(require.on_error, at)
        if value is True:
            return None
        parts = [require.condition, *([] if require.on_error is None else [require.on_error])]
        says = require.otherwise
        if (
            says is not None
            and at.node is None
            and any(self.reads_node(p) for p in says.parts if isinstance(p, ir.Expr))
        ):
            says = None  # about a node, and no node is looked at
        reason = f"{rule.name}: `" if value is FAILED or says is None else self.text(says, at)
        return Refusal(rule.name, any(map(self.is_evictable, parts)), reason)

    def over_quota(self, pod: ThePod) -> Refusal | None:
        """Why a quota refuses the pod, before any filter is asked."""
        for rule in self.policy.quotas:
            if self.quota_key(rule, pod) is not None:
                limit, guarantee = self.amounts(rule.limit or (), pod), self.amounts(rule.guarantee, pod)
                borrows = rule.borrow is not None and self.applies(rule.borrow, self.place(pod), failed=False)
                for bound in (limit, {} if borrows else guarantee):
                    for name, asked in pod.requests.items():
                        if asked and name in bound and self.used(rule, name, pod) + asked > bound[name]:
                            return Refusal(rule.name, asked <= bound[name], f"quota {rule.name}")
        return None

    def quota_key(self, rule: ir.Quota, pod: ThePod) -> str | None:
        """Which of the rule's quotas a pod counts in; None for none of them."""
        if not self.applies(rule.when, self.place(pod), failed=True):
            return None
        value = "" if rule.by is None else self.value(rule.by, self.place(pod))
        value = value.value if isinstance(value, Some) else value
        return "" if value is FAILED else None if isinstance(value, Nothing) else value

    def amounts(self, written: ir.Amounts, pod: ThePod) -> dict[str, int]:
        """The amounts for a pod, without those that there are none of."""
        found = {}
        for name, amount in written:
            value = self.value(amount, self.place(pod))
            value = value.value if isinstance(value, Some) else value
            if not isinstance(value, Nothing):
                found[name] = 0 if value is FAILED else max(value, 0)
        return found

    def used(self, rule: ir.Quota, name: str, asking: ThePod) -> int:
        """What the pods of a quota with a node use; beside them those of no lower priority for which room is made."""
        total, key = 0, self.quota_key(rule, asking)
        for pod in asking.cluster.pods:
            coming = pod is not asking and pod.status.get("nominatedNodeName") and pod["priority"] >= asking["priority"]
            if (pod.node or coming) and self.quota_key(rule, pod) == key:
                total += pod.requests.get(name, 0)
        return total

    def whole(self, pod: ThePod) -> Refusal | None:
        """Why the pod is refused before any node is looked at."""
        over = self.over_quota(pod)
        if over is not None:
            return over
        refused = None
        for rule, require in self._asked(pod, of_node=False):
            if refused is None or refused.rule != rule.name:
                # As in PreFilter: a refusal that no eviction helps ends it, else the last one counts.
                refused = self._unmet(rule, require, self.place(pod)) or refused
                if refused is not None and not refused.evictable:
                    return refused
        return refused

    def refusal(self, pod: ThePod, node: TheNode) -> Refusal | None:
        """Why a node is refused; None where it is not."""
        for rule, require in self._asked(pod, of_node=True):
            refusal = self._unmet(rule, require, self.place(pod, node))
            if refusal is not None:
                return refusal
        return None

    def _asked(self, pod: ThePod, of_node: bool) -> list[tuple[ir.Filter, ir.Require]]:
        found = []
        for rule in self.policy.filters:
            if self.applies(rule.when, self.place(pod), failed=True):
                for require in rule.requires:
                    parts = (require.condition, require.on_error)
                    if any(part is not None and self.reads_node(part) for part in parts) == of_node:
                        found.append((rule, require))
        return found

    # --- scores --------------------------------------------------------------------------------------------

    def scores(self, pod: ThePod, nodes: Sequence[TheNode]) -> dict[str, list[int]]:
        """The weighted points of each node, by the rules that are for the pod."""
        found = {}
        for rule in self.policy.scores:
            if self.applies(rule.when, self.place(pod), failed=False):
                raw = [self._raw(rule, self.place(pod, node)) for node in nodes]
                found[rule.name] = [points * self.weight(rule) for points in _normalized(rule, raw)]
        return found

    def weight(self, rule: ir.Score) -> int:
        """A tier's is more than what all the others that count less could add: the later tiers, and the weights."""
        if rule.weight is not None:
            value: Any = self.params[rule.weight.name] if isinstance(rule.weight, ir.ParamRef) else rule.weight
            return value
        scores = self.policy.scores
        later = scores[scores.index(rule) + 1 :]
        return 1 + 100 * sum(self.weight(one) for one in scores if one.weight is not None or one in later)

    def _raw(self, rule: ir.Score, at: Place) -> Fraction | None:
        for expr in (rule.value, rule.on_error):
            value = self.value(expr, at)
            value = value.value if isinstance(value, Some) else value
            if isinstance(value, Nothing):
                return None
            if value is not FAILED and math.isfinite(float(value)):
                return Fraction(float(value))
        return None

    # --- rules about pods ----------------------------------------------------------------------------------

    def order_key(self, keys: Sequence[ir.OrderKey], at: Place) -> list[tuple[int, Any]]:
        """The smallest comes first."""
        found: list[tuple[int, Any]] = []
        for key in keys:
            value = self.value(key.value, at)
            value = value.value if isinstance(value, Some) else value
            endless = isinstance(value, float) and not math.isfinite(value)
            if value is FAILED or isinstance(value, Nothing) or endless:
                found.append((-1 if key.missing_first else 1, 0))
            else:
                found.append((0, Descending(value) if key.descending else value))
        return found

    def tenant(self, pod: ThePod) -> str:
        value = self.value(self.policy.queue.fair_by, self.place(pod))
        return "" if value is FAILED else value

    def gang(self, pod: ThePod) -> tuple[ir.Gang, str] | None:
        """The first gang whose `when` holds, and the pod's key in it."""
        at = self.place(pod)
        for rule in self.policy.gangs:
            if self.applies(rule.when, at, failed=True):
                key = self.value(rule.key, at)
                if key is not FAILED:
                    return rule, key
        return None

    def seconds(self, expr: ir.Expr | None, at: Place) -> float | None:
        value = self.value(expr, at)
        return None if value is FAILED else value / 1e9


class Descending:
    """A value that sorts the other way round."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]  # it is only compared


def _normalized(rule: ir.Score, raw: Sequence[Fraction | None]) -> list[int]:
    """Whole points from 0 to 100; what has no value scores 0."""
    counted = [value for value in raw if value is not None]
    low = min(counted, default=Fraction(0)) if rule.normalize is ir.Normalize.MINMAX else Fraction(0)
    spread = max(counted, default=Fraction(0)) - low

    def points(value: Fraction) -> int:
        if rule.normalize is not ir.Normalize.NONE:
            alike = spread <= 0 or (rule.normalize is ir.Normalize.MINMAX and spread < Fraction(1, 10**9))
            value = Fraction(0) if alike else 100 * (value - low) / spread
        value = 100 - value if rule.reverse else value
        return min(math.floor(min(max(value, Fraction(0)), Fraction(100)) + Fraction(1, 10**9)), 100)

    return [0 if value is None else points(value) for value in raw]
