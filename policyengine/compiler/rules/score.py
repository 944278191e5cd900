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
from policyengine.compiler.columns.column import Array, Column, Mask
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


@dataclass(frozen=True, slots=True)
class Raw:
    """An expression's doubles, and the rows where it is empty or failed."""

    values: NDArray[np.float64]
    empty: Mask | None
    failed: Mask | None


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
            raw = raw_scores(self._value(frame))
            if raw.failed is not None and self._on_error is not None:
                raw = _replaced(raw, raw_scores(self._on_error(frame)))
        return _marked(raw, frame.count)

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


def raw_scores(column: Column) -> Raw:
    """A column of ints or doubles as doubles; what is not finite has failed."""
    values = np.asarray(column.values, dtype=np.float64)
    failed, empty = np.logical_not(np.isfinite(values)), None
    if column.present is not None:
        failed, empty = failed & column.present, np.logical_not(column.present)
    if column.faults is not None:
        failed = failed | (column.faults != 0)
    return Raw(values, empty, np.asarray(failed) if failed.any() else None)


def _replaced(raw: Raw, instead: Raw) -> Raw:
    failed = raw.failed
    assert failed is not None
    return Raw(
        np.where(failed, instead.values, raw.values),
        _either(failed, instead.empty, raw.empty),
        _either(failed, instead.failed, None),
    )


def _either(which: Mask, then: Mask | None, otherwise: Mask | None) -> Mask | None:
    if then is None and otherwise is None:
        return None
    return np.where(which, False if then is None else then, False if otherwise is None else otherwise)


def _marked(raw: Raw, rows: int) -> NDArray[np.float64]:
    values: Array = raw.values
    if raw.empty is not None:
        values = np.where(raw.empty, EMPTY, values)
    if raw.failed is not None:
        values = np.where(raw.failed, FAILED, values)
    return np.array(np.broadcast_to(values, (rows,)))
