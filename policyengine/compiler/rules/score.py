"""`score "name" weight N [when e] [normalize …] = e [on error e]` as a score plugin.

Raw scores are doubles. A row whose expression has no value (an error, NaN or an infinity that `on error` does not
replace) is `FAILED`, an empty optional is `EMPTY`; both score 0 in the end and stay out of maximum and minimum. So what
is normalised is finite, and its products are too: numbers near the greatest doubles are made smaller first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.compiler.columns.column import Column
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.rules.node_rule import (
    Decisions,
    DomainRows,
    FollowsDomains,
    NodeRule,
    Signature,
    asks_domains,
    domain_rows,
    reads_of,
)
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, Scores
from policyengine.framework.status import SKIP, SUCCESS, Rows, Status
from policyengine.language import ir
from policyengine.language.ir import Normalize

EMPTY = np.nan
FAILED = -np.inf
"""Neither can be a raw score: one that is not finite is an error."""

_EQUAL = 1e-9
"""Scores that differ by less are all the same to `minmax`; also what is added before truncating."""

_LARGE, _SMALLER = 1e300, 2.0**-16
"""Raw scores further apart than `_LARGE` are multiplied by `_SMALLER`, which rounds nothing: 100 times their difference
is a double then."""


@dataclass(frozen=True, slots=True)
class ScoreState:
    """What `pre_score` prepared: the hoisted values."""

    pod: PodInfo
    hoisted: Mapping[int, Column]
    domains: DomainRows | None


class RuleScore(NodeRule):
    """A score rule of a policy."""

    def __init__(self, rule: ir.Score, scope: Scope, decisions: Decisions) -> None:
        read = [rule.value] if rule.on_error is None else [rule.value, rule.on_error]
        super().__init__(rule.name, reads_of(read, scope), Signature(rule.when, read, scope, decisions))
        self._normalize, self._reverse = rule.normalize, rule.reverse
        self._decisions, self._hoists = decisions, Hoists()
        self._when = scope.condition(rule.when, failed=False)
        self._value = scope.lower(rule.value, self._hoists)
        self._on_error = None if rule.on_error is None else scope.lower(rule.on_error, self._hoists)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """None: a score refuses nothing."""
        return ()

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, ScoreState | None]:
        """SKIP unless `when` is true; one without a value counts as false."""
        decision = self._decisions.about(pod, snapshot)
        if not self._when(decision):
            return SKIP, None
        hoisted = self._hoists.columns(decision)
        return SUCCESS, ScoreState(pod, hoisted, domain_rows(self._hoists, hoisted, snapshot.nodes))

    def score(self, state: ScoreState, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """0..100, `int64[rows]`."""
        return self._rounded(self._raw(state, snapshot, rows), None)

    def _raw(self, state: ScoreState, snapshot: Snapshot, rows: Rows) -> NDArray[np.float64]:
        """Raw scores: `float64[rows]`, `EMPTY` and `FAILED` among them."""
        frame = self._decisions.frame(state.pod, snapshot, rows, state.hoisted)
        with np.errstate(all="ignore"):
            raw = _raw_scores(self._value(frame))
            if self._on_error is not None and (failed := raw == FAILED).any():
                raw = np.where(failed, _raw_scores(self._on_error(frame)), raw)
        return np.array(np.broadcast_to(raw, (frame.count,)))

    def _rounded(self, scores: NDArray[np.generic], extremes: tuple[float, float] | None) -> Scores:
        """Normalised, reversed, clamped to 0..100, and truncated after 1e-9 is added."""
        raw = np.asarray(scores, dtype=np.float64)
        counts = np.isfinite(raw)
        with np.errstate(all="ignore"):
            values = self._normalized(np.where(counts, raw, 0.0), extremes)
            if self._reverse:
                values = MAX_NODE_SCORE - values
            whole = np.floor(np.clip(values, 0.0, float(MAX_NODE_SCORE)) + _EQUAL)
        return np.where(counts, np.minimum(whole, MAX_NODE_SCORE), 0).astype(np.int64)

    def _normalized(self, values: NDArray[np.float64], extremes: tuple[float, float] | None) -> NDArray[np.float64]:
        if self._normalize is Normalize.NONE:
            return values
        least, greatest = extremes if extremes is not None else (0.0, 0.0)
        if self._normalize is Normalize.MAX:
            least = 0.0
        spread = greatest - least
        if spread < _EQUAL and (self._normalize is Normalize.MINMAX or spread <= 0):
            return np.zeros_like(values)
        if spread > _LARGE:
            values, least = values * _SMALLER, least * _SMALLER
            spread = greatest * _SMALLER - least
        return MAX_NODE_SCORE * (values - least) / spread


class NormalizedRuleScore(RuleScore):
    """A score rule with `normalize max` or `minmax`: a node's score follows from those of all feasible nodes."""

    def score(self, state: ScoreState, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """Raw scores: `float64[rows]`, `EMPTY` and `FAILED` among them."""
        return self._raw(state, snapshot, rows)

    def normalize(self, state: ScoreState, scores: NDArray[np.generic]) -> Scores:
        """0..100, `int64[feasible]`."""
        counted = scores[np.isfinite(scores)]
        return self._rounded(scores, (float(counted.min()), float(counted.max())) if len(counted) else None)


class DomainScore(FollowsDomains, RuleScore):
    """A score rule that asks about domains."""


class NormalizedDomainScore(FollowsDomains, NormalizedRuleScore):
    """One that is normalised, too."""


def rule_score(rule: ir.Score, scope: Scope, decisions: Decisions) -> RuleScore:
    """The plugin of a score rule."""
    read = [rule.value] if rule.on_error is None else [rule.value, rule.on_error]
    if rule.normalize is Normalize.NONE:
        return (DomainScore if asks_domains(read, scope) else RuleScore)(rule, scope, decisions)
    return (NormalizedDomainScore if asks_domains(read, scope) else NormalizedRuleScore)(rule, scope, decisions)


def _raw_scores(column: Column) -> NDArray[np.float64]:
    """A column of ints or doubles as raw scores."""
    values = np.asarray(column.values, dtype=np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        values = np.where(finite, values, FAILED)
    if column.present is not None:
        values = np.where(column.present, values, EMPTY)
    return values if column.faults is None else np.where(column.faults != 0, FAILED, values)
