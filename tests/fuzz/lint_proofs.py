"""What lint says of never and always, held against generated policies in generated clusters. `make fuzz` runs many.

    python -m tests.fuzz.seeds lint_proofs [POLICIES] [SEED]

A naive interpreter, which shares no code with lint, evaluates every condition and score that a finding is about, for
every pod and node of some small clusters. A finding is false where one of them contradicts it. The bounds of every
expression are held against its values in the same way.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from policyengine.language import ir
from policyengine.language.bounds import Bounds
from policyengine.language.check import check_files
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.ir.ir_walk import children, free_locals, rebuilt, walk
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.parse import parse_file
from policyengine.language.types import Kind
from tests.compiler import naive
from tests.compiler.naive import Place
from tests.compiler.naive_objects import Cluster
from tests.compiler.naive_values import Nothing, NoValue, Some
from tests.compiler.worlds import World
from tests.fuzz.lint_policies import Writer, pods, worlds
from tests.language.lint.findings import plugins

FAILED = object()


class Trial:
    """One policy: what lint says of it, and what its expressions are everywhere."""

    def __init__(self, policy: ir.Policy, chance: random.Random) -> None:
        self.policy = policy
        lets = {let.name: let.value for let in policy.lets}
        everywhere = worlds(chance)
        waiting = pods(chance)
        params = [{"most": most, "least": least * 10**9} for most in (1, 5, 10) for least in (1, 30, 90)]
        self.rows = [
            [Place(cluster.pods[-1], node, lets, values) for node in cluster.nodes]
            for world in everywhere
            for pod, values in ((pod, chance.choice(params)) for pod in chance.sample(waiting, 3))
            for cluster in [Cluster.of(world, pod.manifest())]
        ]
        beside = Cluster.of(World([], waiting)).pods
        self.alike = [[Place(pod, None, lets, values) for pod in beside] for values in params[::4]]
        """All pods beside each other, under the same params."""
        self.places = [place for row in self.rows for place in row]
        self.parts = {id(part): part for member in _members(policy) for part in walk(member)}

    def value(self, expr: ir.Expr, at: Place) -> Any:
        try:
            return naive.evaluate(expr, at)
        except NoValue:
            return FAILED

    def met(self, require: ir.Require, at: Place) -> bool:
        """Whether a node passes a require."""
        value = self.value(require.condition, at)
        if value is FAILED and require.on_error is not None:
            value = self.value(require.on_error, at)
        return value is True

    def points(self, score: ir.Score, at: Place) -> float:
        """A score before it is cut to 0 to 100."""
        value = self.value(score.value, at)
        if value is FAILED and score.on_error is not None:
            value = self.value(score.on_error, at)
        value = value.value if isinstance(value, Some) else value
        return 0.0 if value is FAILED or isinstance(value, Nothing) or value != value else float(value)

    def runs(self, filter_: ir.Filter | ir.Gang, at: Place) -> bool:
        """Whether the `when` of a rule lets it run: one that fails does."""
        return filter_.when is None or self.value(filter_.when, at) is not False

    # --- findings ---------------------------------------------------------------------------------------

    def holds(self, finding: Diagnostic) -> bool:
        """Whether nothing contradicts a finding."""
        claim = CLAIMS.get(finding.code)
        return claim is None or claim(self, finding)

    def requires_at(self, finding: Diagnostic) -> tuple[ir.Filter, int]:
        return next(
            (filter_, number)
            for filter_ in self.policy.filters
            for number, require in enumerate(filter_.requires)
            if finding.span in (require.condition.span, require.on_error and require.on_error.span)
        )

    def parts_at(self, finding: Diagnostic) -> list[ir.Expr]:
        return [part for part in self.parts.values() if part.span == finding.span]

    def same_everywhere(self, change: Callable[[ir.Expr], ir.Expr]) -> bool:
        """Whether no condition or score has another outcome once parts of it are changed."""
        for member in _members(self.policy):
            changed = _changed(member, change)
            if changed is not member and not free_locals(changed):
                for at in self.places:
                    if not _alike(self.value(member, at), self.value(changed, at)):
                        return False
        return True


def _members(policy: ir.Policy) -> Iterator[ir.Expr]:
    """The expressions of the rules."""
    for let in policy.lets:
        yield let.value
    for permit in policy.permits:
        yield from (expr for expr in (permit.delay, permit.timeout) if expr is not None)
    yield from (one.value for one in policy.queue.order)
    for rule in (*policy.filters, *policy.scores, *policy.gangs):
        if rule.when is not None:
            yield rule.when
    for filter_ in policy.filters:
        yield from (require.condition for require in filter_.requires)
    for score in policy.scores:
        yield score.value
    for failing in (*policy.scores, *(require for filter_ in policy.filters for require in filter_.requires)):
        if failing.on_error is not None:
            yield failing.on_error


def _changed(expr: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    other = change(expr)
    if other is not expr:
        return other
    parts = children(expr)
    changed = [_changed(part, change) for part in parts]
    return expr if all(map(lambda a, b: a is b, parts, changed)) else rebuilt(expr, changed)


def _alike(a: Any, b: Any) -> bool:
    return a is b or a == b or (a != a and b != b)


def never_passes(trial: Trial, finding: Diagnostic) -> bool:
    filter_, number = trial.requires_at(finding)
    asked = [at for at in trial.places if trial.runs(filter_, at)]
    return not any(all(trial.met(one, at) for one in filter_.requires[: number + 1]) for at in asked)


def refuses_nothing(trial: Trial, finding: Diagnostic) -> bool:
    filter_, number = trial.requires_at(finding)
    before = filter_.requires[:number] if finding.code == "PE3003" else ()
    condition = filter_.requires[number].condition
    asked = [at for at in trial.places if trial.runs(filter_, at) and all(trial.met(one, at) for one in before)]
    return all(trial.value(condition, at) is True for at in asked)


def has_one_outcome(trial: Trial, finding: Diagnostic) -> bool:
    said = "always true" in finding.message
    whens = [rule.when for rule in (*trial.policy.filters, *trial.policy.gangs) if rule.when is not None]
    when = next(one for one in whens if one.span == finding.span)
    return all(trial.value(when, at) is said for at in trial.places)


def decides_nothing(trial: Trial, finding: Diagnostic) -> bool:
    said = "always true" in finding.message

    def constant(part: ir.Expr, old: ir.Expr) -> ir.Expr:
        return ir.Const(type=part.type, span=part.span, value=said) if part is old else part

    parts = [part for part in trial.parts_at(finding) if part.type.kind is Kind.BOOL]
    return any(trial.same_everywhere(lambda one, old=part: constant(one, old)) for part in parts)


def adds_nothing(trial: Trial, finding: Diagnostic) -> bool:
    def without(part: ir.Expr) -> ir.Expr:
        if not isinstance(part, ir.Logic) or all(one.span != finding.span for one in part.operands):
            return part
        left = tuple(one for one in part.operands if one.span != finding.span)
        return left[0] if len(left) == 1 else ir.Logic(op=part.op, operands=left, type=part.type, span=part.span)

    return trial.same_everywhere(without)


def requires_the_same(trial: Trial, finding: Diagnostic) -> bool:
    filter_, number = trial.requires_at(finding)
    named = finding.message.split("`")[1]
    first = next(one for one in trial.policy.filters if one.name == named)
    asked = [at for at in trial.places if trial.runs(filter_, at)]
    passed = [at for at in asked if not trial.runs(first, at) or all(trial.met(one, at) for one in first.requires)]
    return all(trial.met(filter_.requires[number], at) for at in passed)


def is_known_beforehand(trial: Trial, finding: Diagnostic) -> bool:
    calls = [part for part in trial.parts_at(finding) if isinstance(part, ir.Call) and len(part.args) == 2]
    known = {"_-_": {0}, "_/_": {1}, "ratio": {0, 1}, "_==_": {True}, "_<=_": {True}, "_>=_": {True}}
    known |= {"_!=_": {False}, "_<_": {False}, "_>_": {False}}
    closed = [call for call in calls if call.function in known and not free_locals(call)]
    return all(trial.value(call, at) in {FAILED, *known[call.function]} for call in closed for at in trial.places)


def is_the_same_on_all_nodes(trial: Trial, finding: Diagnostic) -> bool:
    score = _score_at(trial, finding)
    return all(len({min(max(trial.points(score, at), 0), 100) for at in row}) <= 1 for row in trial.rows)


def lies_within(trial: Trial, finding: Diagnostic) -> bool:
    low, high = (float(end) for end in re.findall(r"within (\S+) and (\S+?)(?: |:)", finding.message)[0])
    score = _score_at(trial, finding)
    slack = 1e-5 * max(abs(low), abs(high), 1e-9)
    cut = finding.code == "PE3102"
    points = [trial.points(score, at) for at in trial.places]
    return all(low - slack <= (min(max(one, 0.0), 100.0) if cut else one) <= high + slack for one in points)


def _score_at(trial: Trial, finding: Diagnostic) -> ir.Score:
    return next(score for score in trial.policy.scores if score.value.span == finding.span)


def never_decides(trial: Trial, finding: Diagnostic) -> bool:
    """Whom another score puts apart by a point, this one does not bring together."""
    named = finding.message.split("`")[1:4:2]
    own, heavier = (next(one for one in trial.policy.scores if one.name == name) for name in named)
    points = [min(max(trial.points(own, at), 0.0), 100.0) for at in trial.places]
    return (max(points) - min(points)) * _weight(own) < _weight(heavier)


def _weight(score: ir.Score) -> int:
    assert isinstance(score.weight, int)
    return score.weight


def decides_nothing_more(trial: Trial, finding: Diagnostic) -> bool:
    """Pods that are equal in the keys before are equal in this one."""
    order = trial.policy.queue.order
    at = next(number for number, one in enumerate(order) if one.span == finding.span)
    for places in trial.alike:
        keys = [[trial.value(one.value, place) for one in order[: at + 1]] for place in places]
        for one, other in combinations(keys, 2):
            if all(map(_alike, one[:at], other[:at])) and not _alike(one[at], other[at]):
                return False
    return True


def has_one_member(trial: Trial, finding: Diagnostic) -> bool:
    gang = next(one for one in trial.policy.gangs if one.key.span == finding.span)
    keys = [[trial.value(gang.key, place) for place in places] for places in trial.alike]
    return all(len(set(some)) == len(some) for some in keys)


def outlasts(trial: Trial, finding: Diagnostic) -> bool:
    permit = next(one for one in trial.policy.permits if one.delay is not None and one.delay.span == finding.span)
    assert permit.delay is not None and permit.timeout is not None
    return all(trial.value(permit.delay, at) >= trial.value(permit.timeout, at) for at in trial.places)


def never_applies(trial: Trial, finding: Diagnostic) -> bool:
    later, earlier = (
        next(gang for gang in trial.policy.gangs if gang.name == name) for name in finding.message.split("`")[1:4:2]
    )
    return all(trial.runs(earlier, at) for at in trial.places if trial.runs(later, at))


def cannot_fail(trial: Trial, finding: Diagnostic) -> bool:
    conditions = [(require.on_error, require.condition) for one in trial.policy.filters for require in one.requires]
    conditions += [(score.on_error, score.value) for score in trial.policy.scores]
    expr = next(value for on_error, value in conditions if on_error is not None and on_error.span == finding.span)
    return all(trial.value(expr, at) is not FAILED for at in trial.places)


CLAIMS: dict[str, Callable[[Trial, Diagnostic], bool]] = {
    "PE3001": never_passes,
    "PE3002": refuses_nothing,
    "PE3003": refuses_nothing,
    "PE3004": has_one_outcome,
    "PE3005": requires_the_same,
    "PE3006": decides_nothing,
    "PE3007": adds_nothing,
    "PE3008": is_known_beforehand,
    "PE3101": is_the_same_on_all_nodes,
    "PE3102": lies_within,
    "PE3103": lies_within,
    "PE3104": never_decides,
    "PE3202": decides_nothing_more,
    "PE3301": has_one_member,
    "PE3304": never_applies,
    "PE3306": outlasts,
    "PE3404": cannot_fail,
}
"""Code -> what its finding claims."""

_NUMBERS = frozenset({Kind.INT, Kind.DOUBLE, Kind.CPU, Kind.MEMORY})


def outside_its_bounds(trial: Trial) -> Iterator[str]:
    """The expressions with a value that their bounds do not hold, or with none though they cannot fail."""
    policy = trial.policy
    bounds = Bounds({one.name: one for one in policy.params}, {let.name: let for let in policy.lets})
    for part in trial.parts.values():
        if isinstance(part, ir.Const | ir.Field) or free_locals(part) or part.type.kind not in {*_NUMBERS, Kind.BOOL}:
            continue
        low, high, nan = bounds.of(part)
        may_fail = bounds.may_fail(part)
        for at in trial.places:
            value = trial.value(part, at)
            if value is FAILED:
                if not may_fail:
                    yield f"fails: {part}"
            elif part.type.kind in _NUMBERS and not (nan if value != value else low <= value <= high):
                yield f"{value} is not within {low} and {high}: {part}"


def tried(seed: int) -> tuple[list[str], dict[str, int]]:
    """What is false of one generated policy, and the findings that were held against its clusters."""
    chance = random.Random(seed)
    text = Writer(chance).policy()
    source = Source("p.policy", text)
    file, broken = parse_file(source)
    policies, wrong = check_files([(file, source)], plugins())
    assert not broken, (text, broken)
    if wrong:
        return [], {"policies": 1}  # a constant without a value, a comparison of what has no order
    trial = Trial(policies[0], chance)
    found = [one for one in lint(source, file, policies, plugins(), Settings()) if one.code in CLAIMS]
    false = [f"{one.code} {one.message}: `{source.slice(one.span)}`" for one in found if not trial.holds(one)]
    false += [line for number, line in enumerate(outside_its_bounds(trial)) if number < 2]
    return [f"seed {seed}: {line}\n{text}" for line in false], {"policies": 1, "findings": len(found)}
