"""Finds the smallest cluster that shows a finding of lint.

Clusters are drawn, always the same ones for the same policy: of the fields that the policy reads, with values at the
edges of the constants it compares them with. Each condition that the finding is about is compiled as a score of its own
and evaluated on all nodes of a cluster at once. What comes nearest is played through the policy itself, and made
smaller while it still shows the same: a node, pod or field is left out, an amount is halved.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.ir.ir_walk import expressions_in, extent
from policyengine.language.types import BOOL, DOUBLE, Kind
from policyengine.trials.finding_claims import CLAIMS, replace_tests
from policyengine.trials.finding_draw import Draw
from policyengine.trials.finding_example import NODES, POD, Claim, Example, as_test, expected, given, play
from policyengine.trials.policy_test import TestedPolicy
from policyengine.trials.trial_attempts import Attempt

ROUNDS: Final = 6
"""Clusters that are drawn."""
_LOOK, _TRIED = 2, 24
"""After how many clusters there may be enough, and how many examples of one side are played then."""
_MANY_NODES, _SMALLER = 5, 250
"""Nodes of a drawn cluster, and how often an example is tried to be made smaller."""
_TRUE, _FALSE, _FAILS = 100.0, 0.0, 50.0


class Shown(NamedTuple):
    """One example of a finding."""

    steps: tuple[ir_test.Step, ...]
    """What is given, and what is expected then: a test that passes."""
    text: str
    """The same as a `test` of the policy."""


def examples(tested: TestedPolicy, finding: Diagnostic) -> tuple[bool, list[Shown]]:
    """Whether no cluster contradicts a finding of the policy, and the smallest clusters that show it: two where it says
    never or always and two come near it from different sides, else one; none where none was found. Its code is among
    `CLAIMS`."""
    try:
        claim = CLAIMS[finding.code](tested.policy, finding)
    except StopIteration:
        return False, []  # it is about a part of a macro's body, which has no value of its own
    search = _Search(tested, claim)
    found: list[Shown] = []
    line = tested.policy.source.line_column(finding.span.start)[0]
    for number, example in enumerate(search.examples(2 if claim.never else 1), 1):
        run = play(tested, example)
        assert run is not None
        steps = (*given(example), *expected(run, example, claim.scores, claim.in_order))
        name = f"{finding.code} of line {line}" + (f", {number}" if claim.never else "")
        found.append(Shown(steps, as_test(name, search.notes(example), steps, tested.policy)))
    return claim.never, found


class _Rank(NamedTuple):
    """How near an example comes, the larger the nearer, and which of the conditions hold in it."""

    near: float
    outcomes: tuple[bool | None, ...]


class _Search:
    """The search for one finding."""

    def __init__(self, tested: TestedPolicy, claim: Claim) -> None:
        self._tested, self._claim = tested, claim
        self._chance = random.Random(0)
        leaves = {id(want.leaf): want for want in claim.want.leaves()}
        self._beyond = [want.beyond for want in leaves.values()]
        about = [
            *(want.leaf for want in leaves.values() if want.leaf is not None),
            *(one.value for one in tested.policy.scores if one.name in claim.scores),
        ]
        everything = list(expressions_in(replace_tests(tested.policy)))
        self._draws = [Draw(tested.policy, some, claim, self._chance) for some in (about or everything, everything)]
        self._leaves = [want.leaf for want in leaves.values() if want.leaf is not None]
        policy = tested.policy
        scores = [_probe(number, leaf) for number, leaf in enumerate(self._leaves)]
        scores += [replace(score, weight=1) for score in policy.scores if score.name in claim.apart]
        members = ("uses", "filters", "gangs", "quotas", "permits", "logs", "annotations", "tests")
        bare: dict[str, Any] = dict.fromkeys(members, ())
        bare |= {"disabled": {}, "preempt": None, "queue": ir.Queue(order=()), "base": "none", "scores": tuple(scores)}
        self._probes = replaced(tested, policy=replace(policy, **bare), tests=())

    def examples(self, most: int) -> list[Example]:
        """Examples that come nearest, each from another side."""
        sides: dict[tuple[bool | None, ...], list[tuple[float, Example]]] = {}
        found: list[tuple[_Rank, Example]] = []
        for number in range(ROUNDS):
            for rank, example in (one for _ in range(4) for one in self._candidates(number)):
                sides.setdefault(rank.outcomes, []).append((rank.near, example))
            enough = min(most, len(self._leaves) or 1)
            if number % _LOOK == _LOOK - 1 and len(found := list(islice(self._nearest(sides), most))) == enough:
                break
        return [self._smallest(example, rank) for rank, example in found]

    def _nearest(self, sides: Mapping[tuple[bool | None, ...], list[tuple[float, Example]]]) -> Iterator[Any]:
        """Of each side, the nearest first, the example that comes nearest and shows what is to be seen."""
        for side in sorted(sides, key=lambda side: max(near for near, _ in sides[side]), reverse=True):
            for near, example in sorted(sides[side], key=lambda one: one[0], reverse=True)[:_TRIED]:
                if near < 0 and not self._claim.never:
                    break  # the finding says that there is such a cluster
                rank = _Rank(near, side)
                if self._shows(example, rank):
                    yield rank, example
                    break

    def notes(self, example: Example) -> Iterator[str]:
        """Which of the conditions hold, in their own words."""
        rank = self._rank(example)
        words = {True: "is true", False: "is false", None: "fails to have a value"}
        source = self._tested.policy.source
        for leaf, beyond, outcome in zip(
            self._leaves, self._beyond, rank.outcomes if rank is not None else (), strict=False
        ):
            yield f"`{' '.join(source.slice(leaf.span).split())}{beyond}` {words[outcome]}"

    # --- how near -----------------------------------------------------------------------------------------

    def _candidates(self, number: int) -> Iterator[tuple[_Rank, Example]]:
        """Small examples out of one drawn cluster."""
        claim = self._claim
        if claim.pods > 1 or claim.after:  # what comes of them is known only when they are played
            for _ in range(2):
                example = self._draws[number % 2].example(number, claim.nodes, claim.pods, claim.after)
                rank = self._rank(example)
                if rank is not None:
                    yield rank, example
            return
        example = self._draws[number % 2].example(number, _MANY_NODES, 1, ())
        attempt = self._attempt(self._probes, example)
        if attempt is None:
            return
        names = [name for name in example["nodes"] if name in attempt.scores]
        chosen: Sequence[tuple[str, ...]] = [(name,) for name in names]
        if claim.nodes == 2:
            chosen = [(one, other) for one in names for other in names if one != other]
        ranked = [(self._rank_of(attempt, nodes), nodes) for nodes in chosen]
        ranked.sort(key=lambda one: one[0].near, reverse=True)
        seen: dict[tuple[bool | None, ...], int] = {}
        for rank, nodes in ranked:
            seen[rank.outcomes] = seen.get(rank.outcomes, 0) + 1
            if seen[rank.outcomes] <= 2:
                yield rank, _of_nodes(example, nodes)

    def _rank(self, example: Example) -> _Rank | None:
        """None where a node or pod of the claim is missing."""
        nodes = NODES[: self._claim.nodes]
        if not self._leaves and not self._claim.apart:
            return _Rank(0, ()) if all(name in example.get("nodes", {}) for name in nodes) else None
        attempt = self._attempt(self._tested if self._claim.apart else self._probes, example)
        if attempt is None or any(name not in attempt.scores for name in nodes):
            return None
        return self._rank_of(attempt, nodes)

    def _rank_of(self, attempt: Attempt, nodes: Sequence[str]) -> _Rank:
        first = attempt.scores[nodes[0]]
        values = {_FALSE: False, _TRUE: True}
        outcomes = {id(leaf): values.get(first[_name(at)]) for at, leaf in enumerate(self._leaves)}
        if not self._claim.apart:
            return _Rank(-self._claim.want.distance(outcomes), tuple(outcomes.values()))
        second = attempt.scores[nodes[1]]
        gaps = [first.get(name, 0) - second.get(name, 0) for name in self._claim.apart]
        return _Rank(gaps[0] if len(gaps) == 1 or gaps[1] < 0 else -1000.0, ())

    def _attempt(self, tested: TestedPolicy, example: Example) -> Attempt | None:
        run = play(tested, {**example, "after": 0})
        return None if run is None or POD not in run.uids else run.attempt(POD)

    def _shows(self, example: Example, least: _Rank) -> bool:
        """Whether an example comes as near, from the same side, and the policy does in it what is to be seen."""
        if len(example.get("pods", {})) < self._claim.pods:
            return False
        rank = self._rank(example)
        if rank is None or rank.near < least.near or rank.outcomes != least.outcomes:
            return False
        run = play(self._tested, example)
        return run is not None and self._claim.seen(run)

    def _smallest(self, example: Example, rank: _Rank) -> Example:
        """The example with all left out without which it shows the same."""
        left = _SMALLER

        def shows(other: Example) -> bool:
            nonlocal left
            left -= 1
            return left >= 0 and self._shows(other, rank)

        while (other := _shrunk(example, shows)) != example:
            example = other
        return example


def _shrunk(value: Any, shows: Callable[[Any], bool]) -> Any:
    """A value with all that can be left out left out, one after another."""
    if isinstance(value, dict):
        for key in list(value):
            without = {name: one for name, one in value.items() if name != key}
            if shows(without):
                value = without
            else:
                value = {**value, key: _shrunk(value[key], partial(_with, shows, value, key))}
        return value
    if isinstance(value, list):
        for at in reversed(range(len(value))):
            without_it = value[:at] + value[at + 1 :]
            value = without_it if shows(without_it) else value
        return value
    for simpler in _simpler(value):
        if shows(simpler):
            return _shrunk(simpler, shows)
    return value


def _with(shows: Callable[[Any], bool], whole: Mapping[str, Any], key: str, one: Any) -> bool:
    return shows({**whole, key: one})


def _simpler(value: object) -> Iterator[object]:
    """Smaller numbers, and amounts."""
    if isinstance(value, int) and not isinstance(value, bool) and value:
        yield from dict.fromkeys((0, 1, value // 2, *([value - 1] if 1 < value < 9 else [])))
    elif isinstance(value, str) and (amount := _AMOUNT.fullmatch(value)) and int(amount[1]) > 1:
        yield from (f"{number}{amount[2]}" for number in dict.fromkeys((1, int(amount[1]) // 2)))


_AMOUNT = re.compile(r"([0-9]+)(m|Mi|Gi|)")


def _name(number: int) -> str:
    return f"\t{number}"  # no name of a rule has a tab


def _probe(number: int, leaf: ir.Expr) -> ir.Score:
    """A score that says which outcome a condition has on a node."""
    true, false, fails = (ir.Const(type=DOUBLE, span=leaf.span, value=value) for value in (_TRUE, _FALSE, _FAILS))
    then, otherwise = (true, false) if leaf.type.kind is Kind.BOOL else (false, false)
    condition = leaf
    if leaf.type.kind is not Kind.BOOL:  # a condition that has no value where the leaf has none
        condition = ir.Call(type=BOOL, span=leaf.span, function="_==_", args=(leaf, leaf), **extent(leaf))
    value = ir.Conditional(
        type=DOUBLE, span=leaf.span, condition=condition, then=then, otherwise=otherwise, **extent(leaf)
    )
    return ir.Score(
        name=_name(number), when=None, span=leaf.span, weight=1, normalize=ir.Normalize.NONE, reverse=False,
        value=value, on_error=fails,
    )  # fmt: skip


def _of_nodes(example: Example, chosen: Sequence[str]) -> Example:
    """An example with only some of its nodes, under the names of a claim's, and what stands on them."""
    names = dict(zip(chosen, NODES, strict=False))
    standing = {
        name: {**fields, "on": names[fields["on"]]}
        for name, fields in example["standing"].items()
        if fields["on"] in names
    }
    return {**example, "nodes": {new: example["nodes"][old] for old, new in names.items()}, "standing": standing}
