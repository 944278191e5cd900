"""What is to be seen in the example of a finding: what is wanted of its conditions, and what the policy does then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from policyengine.language import ir
from policyengine.trials.finding_example import waits
from policyengine.trials.policy_test import START
from policyengine.trials.policy_test_verdict import Run

POD, NODES = "p", ("a", "b")
"""The pod that a claim is about, and its nodes."""
FIFTEEN_MINUTES: Final = 15 * 60 * 10**9


class Want(NamedTuple):
    """What is wanted of conditions: a leaf with its outcome, or each of the parts, or one of them."""

    leaf: ir.Expr | None = None
    outcome: bool | None = None
    """None: it fails to have a value."""
    beyond: str = ""
    """What stands behind the leaf's own words: ` > 100`."""
    parts: tuple[Want, ...] = ()
    each: bool = True

    def leaves(self) -> Iterator[Want]:
        """The leaves, in the order they are written."""
        if self.leaf is not None:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def distance(self, outcomes: Mapping[int, bool | None]) -> int:
        """How many leaves have to change until it is so. `outcomes`: by the ids of the leaves' expressions."""
        if self.leaf is not None:
            return int(outcomes[id(self.leaf)] is not self.outcome)
        distances = [part.distance(outcomes) for part in self.parts]
        return sum(distances) if self.each else min(distances, default=0)


def wanted(expr: ir.Expr, outcome: bool) -> Want:
    """A condition has an outcome: taken apart at `&&`, `||`, `!` and `?:`."""
    match expr:
        case ir.Call(function="!_"):
            return wanted(expr.args[0], not outcome)
        case ir.Logic():
            return Want(parts=tuple(wanted(part, outcome) for part in expr.operands), each=(expr.op == "&&") is outcome)
        case ir.Conditional():
            then = each(wanted(expr.condition, True), wanted(expr.then, outcome))
            return Want(parts=(then, each(wanted(expr.condition, False), wanted(expr.otherwise, outcome))), each=False)
        case _:
            return Want(expr, outcome)


def each(*parts: Want) -> Want:
    """All of the parts."""
    return Want(parts=parts)


class Claim(NamedTuple):
    """What is to be seen."""

    want: Want = Want()
    """Of the pod on the first node."""
    never: bool = False
    """It contradicts the finding: no cluster has it, and the nearest are shown."""
    seen: Callable[[Run], bool] = lambda run: True
    """What is to come of it."""
    apart: tuple[str, ...] = ()
    """Scores: the first node has more of the first one than the second node has, and less of the second one."""
    scores: tuple[str, ...] = ()
    """The scores that are shown."""
    nodes: int = 1
    pods: int = 1
    in_order: bool = False
    """Whether the order of the pods is shown."""
    after: tuple[int, ...] = ()
    """Nanoseconds that pass; one of them."""
    reads: tuple[str, ...] = ()
    """Fields of pods that matter although the policy does not read them."""
    amounts: tuple[tuple[str, int], ...] = ()
    """Amounts by resource, near which those of pods are drawn."""


# --- what comes of it --------------------------------------------------------------------------------------


def reached(*rules: str) -> Callable[[Run], bool]:
    """The policy's filters were asked: no plugin refused the node before them. `rules`: names of filters."""

    def seen(run: Run) -> bool:
        attempt = run.attempt(POD)
        status = None if attempt is None else attempt.refused.get(NODES[0])
        return waits(run, POD) or (attempt is not None and (status is None or status.plugin in rules))

    return seen


def refused_by(rule: str) -> Callable[[Run], bool]:
    """The filter refused the first node."""

    def seen(run: Run) -> bool:
        attempt = run.attempt(POD)
        return attempt is not None and NODES[0] in attempt.refused and attempt.refused[NODES[0]].plugin == rule

    return seen


def told_off_by(rule: str) -> Callable[[Run], bool]:
    """A quota or permit refused the pod, and it is on no node."""

    def seen(run: Run) -> bool:
        if run.trial.node_of(run.uids[POD]):
            return False
        lines = [line for line in run.trial.timeline(run.uids[POD]) if line.what in ("refused", "gated")]
        return any(rule == by or rule in by for line in lines if (by := line.details.get("by", "")))

    return seen


def goes_to_second(run: Run) -> bool:
    """The pod is bound to the second node."""
    return run.trial.node_of(run.uids[POD]) == NODES[1]


def all_wait(run: Run) -> bool:
    """A gang or a permit holds each of the pods."""
    return all(waits(run, pod) for pod in run.uids)


def settled(run: Run) -> bool:
    """No pod is refused."""
    return all(run.trial.node_of(uid) or waits(run, pod) for pod, uid in run.uids.items())


def still_waits(run: Run) -> bool:
    """A gang or a permit holds the pod when a quarter of an hour has passed."""
    return run.trial.now >= START / 1e9 + FIFTEEN_MINUTES / 1e9 and waits(run, POD)


def _popped_first(run: Run, pod: str) -> bool:
    return run.uids[pod] in run.trial.popped[:1]


def younger_first(run: Run) -> bool:
    """The pod made last is given out first."""
    made = {name: run.trial.cluster.pods[uid].metadata.creation_timestamp or "" for name, uid in run.uids.items()}
    return made["p"] < made["q"] and _popped_first(run, "q")


def lower_first(run: Run) -> bool:
    """The pod of lower priority is given out first."""
    pods = run.trial.state.view.pods
    uids = run.uids
    return pods[uids["p"]].priority < pods[uids["q"]].priority and _popped_first(run, "p")
