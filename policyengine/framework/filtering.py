"""Which nodes may hold a pod, and why the others may not: the outcome of PreFilter and Filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.status import Code, Refusal, Rows, Status


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """One filter's refusals: `refused` is `int16[nodes]`, 0 where it lets pass, else 1 + index into `refusals`."""

    plugin: str
    refused: NDArray[np.int16]
    refusals: Sequence[Refusal]


@dataclass(slots=True, eq=False)
class Diagnosis:
    """The verdict over all nodes of one snapshot. The first refusing filter, in the profile's order, counts."""

    _names: Sequence[str]
    feasible: Rows
    """Rows that passed, ascending."""
    _verdicts: tuple[Verdict, ...]
    pre_filter: Status | None
    """The refusal of the pod as a whole, or None."""
    _narrowing: tuple[str, ...] = ()
    """The plugins whose PreFilter left only some nodes."""
    _first: list[tuple[Verdict, Rows]] | None = field(default=None, init=False)

    @property
    def nodes(self) -> int:
        """How many nodes were asked about."""
        return len(self._names)

    @property
    def refused(self) -> tuple[tuple[str, int], ...]:
        """(plugin, nodes that it refuses), whether or not another one refuses them too."""
        return tuple([(verdict.plugin, int(np.count_nonzero(verdict.refused))) for verdict in self._verdicts])

    def refusal(self, row: int) -> Status:
        """Why the node in `row` is refused, signed by the plugin; SUCCESS where it is feasible."""
        if self.pre_filter is not None:
            return self.pre_filter
        for verdict in self._verdicts:
            index = verdict.refused[row]
            if index:
                refusal = verdict.refusals[index - 1]
                return Status(refusal.code, refusal.reasons_at(row), verdict.plugin)
        return Status(Code.SUCCESS)

    def refusals(self, rows: Rows) -> Iterator[tuple[Status, Rows]]:
        """Why rows that are not feasible are refused, as `refusal` says it; those with the same words together."""
        if self.pre_filter is not None:
            yield self.pre_filter, rows
            return
        for verdict in self._verdicts:
            numbers = verdict.refused[rows]
            for number in np.unique(numbers[numbers > 0]).tolist():
                refusal = verdict.refusals[number - 1]
                for reasons, group in _by_reasons(refusal, rows[numbers == number]):
                    yield Status(refusal.code, reasons, verdict.plugin), group
            rows = rows[numbers == 0]

    def by_plugin(self) -> dict[str, Rows]:
        """The rows each plugin was the first to refuse, in the order asked; PreFilter's refusal counts for all."""
        if self.pre_filter is not None:
            return {self.pre_filter.plugin: np.arange(len(self._names))}
        found: dict[str, Rows] = {}
        for verdict, rows in self._first_refusals():
            earlier = found.get(verdict.plugin)
            found[verdict.plugin] = rows if earlier is None else np.union1d(earlier, rows)
        return found

    def also_refused(self, refusals: Mapping[int, Status], first: bool = False) -> Diagnosis:
        """This verdict with some feasible rows refused: {row: the refusal, signed}. `first`: rows refused already are
        refused for that instead."""
        by_plugin: dict[str, tuple[NDArray[np.int16], list[Refusal]]] = {}
        for row, status in refusals.items():
            empty: tuple[NDArray[np.int16], list[Refusal]] = (np.zeros(len(self._names), dtype=np.int16), [])
            refused, known = by_plugin.setdefault(status.plugin, empty)
            refusal = Refusal(status.code, status.reasons)
            if refusal not in known:
                known.append(refusal)
            refused[row] = 1 + known.index(refusal)
        more = tuple(Verdict(plugin, refused, known) for plugin, (refused, known) in by_plugin.items())
        feasible = np.setdiff1d(self.feasible, np.fromiter(refusals, dtype=np.int64, count=len(refusals)))
        verdicts = (*more, *self._verdicts) if first else (*self._verdicts, *more)
        return replace(self, feasible=feasible, _verdicts=verdicts)

    def within(self, rows: NDArray[np.bool_], plugin: str, reason: str) -> Diagnosis:
        """This verdict with all other nodes refused, before anything else, for what nothing but the node can cure.
        `rows`: `bool[nodes]`."""
        refusal = Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
        verdict = Verdict(plugin, (~rows).astype(np.int16), [refusal])
        feasible = self.feasible[rows[self.feasible]]
        return replace(self, feasible=feasible, _verdicts=(verdict, *self._verdicts))

    def counts(self) -> list[tuple[str, int]]:
        """(reason, number of nodes), most frequent first. A reason that differs from node to node is counted as
        one, quoting the node whose name comes first."""
        if self.pre_filter is not None:
            return [(reason, len(self._names)) for reason in self.pre_filter.reasons]
        totals: dict[str, int] = {}
        for verdict, rows in self._first_refusals():
            for _, count, reasons in self._reasons(verdict, rows):
                for reason in reasons:
                    totals[reason] = totals.get(reason, 0) + count
        return sorted(totals.items(), key=lambda item: (-item[1], item[0]))

    def rows_with(self, code: Code) -> Rows:
        """The rows refused with `code`; what preemption may try is `rows_with(Code.UNSCHEDULABLE)`."""
        if self.pre_filter is not None:
            return np.arange(len(self._names) if self.pre_filter.code is code else 0)
        found = np.zeros(len(self._names), dtype=np.bool_)
        for verdict, rows in self._first_refusals():
            has_code = np.array([False, *(refusal.code is code for refusal in verdict.refusals)])
            found[rows] = has_code[verdict.refused[rows]]
        return np.flatnonzero(found)

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that refused the pod or a node: whose events may cure it."""
        if self.pre_filter is not None:
            return frozenset(name for name in (self.pre_filter.plugin, *self._narrowing) if name)
        return frozenset(self.by_plugin()).union(self._narrowing)

    @property
    def pending_plugins(self) -> frozenset[str]:
        """Those among `plugins` that said Pending: their events need no backoff."""
        if self.pre_filter is not None:
            return self.plugins if self.pre_filter.code is Code.PENDING else frozenset()
        return frozenset(
            verdict.plugin
            for verdict, rows in self._first_refusals()
            for index, _, _ in self._reasons(verdict, rows)
            if verdict.refusals[index].code is Code.PENDING
        )

    def message(self, post_filter: str = "") -> str:
        """The FailedScheduling text, as kube-scheduler words it."""
        refused = "" if self.pre_filter is None else self.pre_filter.message
        return fit_error_message(len(self._names), self.counts(), refused, post_filter)

    def _first_refusals(self) -> list[tuple[Verdict, Rows]]:
        """(filter, the rows it was the first to refuse), none of them empty."""
        if self._first is None:
            self._first = []
            left = np.ones(len(self._names), dtype=np.bool_)
            for verdict in self._verdicts:
                refused = verdict.refused != 0
                rows = np.flatnonzero(refused & left)
                if len(rows):
                    self._first.append((verdict, rows))
                    left &= ~refused
        return self._first

    def _reasons(self, verdict: Verdict, rows: Rows) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """(index of the refusal, number of rows, its reasons) of the filter over `rows`."""
        numbers = verdict.refused[rows]
        for index, count in enumerate(np.bincount(numbers)[1:].tolist()):
            if count == 0:
                continue
            refusal = verdict.refusals[index]
            if refusal.render is None:
                yield index, count, refusal.reasons
            else:
                row = min(rows[numbers == index + 1].tolist(), key=self._names.__getitem__)
                quoted = tuple(f"{reason} ({self._names[row]})" for reason in refusal.reasons_at(row))
                yield index, count, quoted


def _by_reasons(refusal: Refusal, rows: Rows) -> Iterator[tuple[tuple[str, ...], Rows]]:
    if refusal.render is None:
        yield refusal.reasons, rows
        return
    found: dict[str, list[int]] = {}
    for row, reason in zip(rows.tolist(), refusal.render(rows), strict=True):
        found.setdefault(reason, []).append(row)
    for reason, group in found.items():
        yield (reason,), np.array(group)


NO_NODES = "no nodes available to schedule pods"
"""kube-scheduler's answer in a cluster without nodes."""


def fit_error_message(
    nodes: int, counts: Iterable[tuple[str, int]], pre_filter: str = "", post_filter: str = ""
) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. <post_filter>`.

    `counts` are (reason, number of nodes); they are written count first and sorted as text. When PreFilter
    refused the pod its message stands in their place.
    """
    if nodes == 0:
        return NO_NODES
    said = pre_filter or ", ".join(sorted(f"{count} {reason}" for reason, count in counts))
    message = f"0/{nodes} nodes are available:" + (f" {said}." if said else "")
    return f"{message} {post_filter}" if post_filter else message
