"""`filter "name" [when e] { require … }` as a filter plugin.

Rules of this file:
1. The first failing require in the order written is the one reported, whatever order evaluation took.
2. A require that reads no node is settled in `pre_filter` and refuses the pod as a whole.
3. A condition without a value refuses, and says why, unless `on error` chooses otherwise; so does a `when`
   without a value: it counts as true.
4. The texts of refusals are written when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_groups import named_by
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.compiler.columns.column import Column, Failed, Fault, attempt
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.compiler.columns.logic_kernels import chosen
from policyengine.compiler.lower.scope import Hoists, Path, Scope
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
from policyengine.compiler.rules.requeue_events import events_of, is_evictable, paths_read, reads_own_group
from policyengine.compiler.rules.texts import Text, erred, unmet
from policyengine.compiler.rules.trends import Trends
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, Status, Verdicts
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in

E = TypeVar("E")
_SUMS: Final = ("used", "free", "podCount")
"""Fields of a node that are sums over its pods."""


@dataclass(frozen=True, slots=True)
class Require(Generic[E]):
    """A require, lowered."""

    condition: E
    on_error: E | None
    text: Text | None
    """What it says where the condition is false, if the author wrote something."""
    source: str
    """The condition as written."""
    code: Code


class NodeRequire(Require[Vector]):
    """One that is asked of every node."""

    def column(self, frame: Frame) -> Column:
        """The condition's bools and faults, `on error` put in."""
        column = self.condition(frame)
        if self.on_error is None or column.faults is None:
            return column
        return chosen(Column(column.faults == 0), Column(column.values), self.on_error(frame))


class PodRequire(Require[Scalar]):
    """One that reads no node."""

    def refusal(self, rule: str, decision: Decision) -> Status | None:
        """The refusal of the pod, None where the condition holds."""
        met = attempt(self.condition, decision)
        if isinstance(met, Failed) and self.on_error is not None:
            met = attempt(self.on_error, decision)
        if met is True:
            return None
        if isinstance(met, Failed):
            reason = erred(rule, self.source, met.detail or met.fault.text)
        else:
            # A text that reads the node has nothing to say about the pod as a whole.
            text = self.text
            reason = unmet(rule, self.source) if text is None or text.differs else text.of(decision)
        return Status(self.code, (reason,), rule)


@dataclass(slots=True)
class FilterState:
    """What `pre_filter` prepared: the hoisted values, and the ways of refusing, two a require (false, failed)."""

    pod: PodInfo
    snapshot: Snapshot
    """What the rows were asked of last; texts are written of it."""
    hoisted: Mapping[int, Column]
    domains: DomainRows | None
    refusals: list[Refusal] = field(default_factory=list)


class RuleFilter(NodeRule):
    """A filter rule of a policy."""

    def __init__(self, rule: ir.Filter, scope: Scope, decisions: Decisions) -> None:
        asked = [one for one in rule.requires if one.reads_node]
        signature = Signature(rule.when, tuple(_expressions(rule.requires)), scope, decisions)
        super().__init__(rule.name, reads_of(list(_conditions(asked)), scope), signature)
        self._decisions, self._hoists = decisions, Hoists()
        self._when = scope.condition(rule.when, failed=True)
        lower = partial(scope.lower, hoists=self._hoists)
        self._of_nodes = tuple(NodeRequire(*_lowered(one, lower, scope, self._hoists)) for one in asked)
        alone = [one for one in rule.requires if not one.reads_node]
        self._of_pod = tuple(PodRequire(*_lowered(one, scope.closure, scope, Hoists())) for one in alone)
        read = (*(() if rule.when is None else (rule.when,)), *_conditions(rule.requires))
        self._events = events_of(read, scope, bool(asked), True, Trends(scope).gets_truer(rule))
        self._reads_own_group = reads_own_group(read, scope)
        said = paths_read(_expressions(rule.requires), scope)
        self.reads_only_sums = self.situation is None and all(map(_is_kept_by_sums, said))
        """Of the pods on a node, in texts too (`SumsReader`)."""

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Derived from the schema fields the rule reads."""
        return self._events

    def waits_with(self, pod: PodInfo) -> Hashable:
        """What pods that the rule refused have in common where one event helps all of them or none."""
        return (self.signature(pod), named_by(pod)) if self._reads_own_group else self.signature(pod)

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, FilterState | None]:
        """SKIP where `when` is false or no require is left for nodes; refuses where a require without node fails."""
        decision = self._decisions.about(pod, snapshot)
        if not self._when(decision):
            return SKIP, None
        for require in self._of_pod:
            refusal = require.refusal(self.name, decision)
            if refusal is not None:
                return refusal, None
        if not self._of_nodes:
            return SKIP, None
        return SUCCESS, self._state(decision, snapshot)

    def _state(self, decision: Decision, snapshot: Snapshot) -> FilterState:
        hoisted = self._hoists.columns(decision)
        state = FilterState(decision.pod, snapshot, hoisted, domain_rows(self._hoists, hoisted, snapshot.nodes))
        for require in self._of_nodes:
            state.refusals.append(self._unmet(require, state, decision))
            state.refusals.append(self._erred(require, state))
        return state

    def _unmet(self, require: NodeRequire, state: FilterState, decision: Decision) -> Refusal:
        text = require.text
        if text is None:
            return Refusal(require.code, (unmet(self.name, require.source),))
        if not text.differs:
            return Refusal(require.code, (text.of(decision),))
        return Refusal(require.code, render=lambda rows: text.at(self._frame(state, rows)))

    def _erred(self, require: NodeRequire, state: FilterState) -> Refusal:
        def render(rows: Rows) -> list[str]:
            with np.errstate(all="ignore"):
                values = require.column(self._frame(state, rows)).to_list(len(rows))
            faults = [value.fault if isinstance(value, Failed) else Fault.FAILED for value in values]
            return [erred(self.name, require.source, fault.text) for fault in faults]

        return Refusal(require.code, render=render)

    def filter(self, state: FilterState, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Filter the rows; whole columns where all rows are wanted."""
        state.snapshot = snapshot
        frame = self._frame(state, rows)
        with np.errstate(all="ignore"):
            columns = [require.column(frame) for require in self._of_nodes]
        return Verdicts(_refused(columns, frame.count), state.refusals)

    def _frame(self, state: FilterState, rows: Rows) -> Frame:
        return self._decisions.frame(state.pod, state.snapshot, rows, state.hoisted)


class DomainFilter(FollowsDomains, RuleFilter):
    """A filter rule that asks about domains."""


def rule_filter(rule: ir.Filter, scope: Scope, decisions: Decisions) -> RuleFilter:
    """The plugin of a filter rule."""
    kind = DomainFilter if asks_domains(_expressions(rule.requires), scope) else RuleFilter
    return kind(rule, scope, decisions)


def _refused(columns: Sequence[Column], rows: int) -> NDArray[np.int16]:
    """`int16[rows]`: 0 where every column is true, else what the first says that is not: odd numbers for false, even
    ones for failed."""
    first = columns[0]
    if len(columns) == 1 and first.faults is None and not first.is_single:
        return np.logical_not(first.values).astype(np.int16)
    refused = np.zeros(rows, dtype=np.int16)
    # Written from the last require to the first: the first that fails is what remains.
    for place in range(len(columns) - 1, -1, -1):
        column = columns[place]
        np.putmask(refused, np.broadcast_to(np.logical_not(column.values), (rows,)), np.int16(2 * place + 1))
        if column.faults is not None:
            np.putmask(refused, np.broadcast_to(column.faults != 0, (rows,)), np.int16(2 * place + 2))
    return refused


def _is_kept_by_sums(path: Path) -> bool:
    """Whether the sums over the pods on a node tell what is read."""
    return (path[0] == "node" and path[1] in _SUMS) or not is_evictable(frozenset((path,)))


def _lowered(
    require: ir.Require, lower: Callable[[ir.Expr], E], scope: Scope, hoists: Hoists
) -> tuple[E, E | None, Text | None, str, Code]:
    """The parts of a `Require`."""
    condition = lower(require.condition)
    on_error = None if require.on_error is None else lower(require.on_error)
    text = None if require.otherwise is None else Text(require.otherwise, scope, hoists)
    code = Code.UNSCHEDULABLE if require.evictable else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return condition, on_error, text, require.text, code


def _conditions(requires: Sequence[ir.Require]) -> Iterator[ir.Expr]:
    for require in requires:
        yield require.condition
        if require.on_error is not None:
            yield require.on_error


def _expressions(requires: Sequence[ir.Require]) -> Iterator[ir.Expr]:
    yield from _conditions(requires)
    for require in requires:
        yield from expressions_in(require.otherwise)
