"""What lint says of never and always, held against generated policies in generated clusters. `make fuzz` runs many.

    python -m tests.fuzz.lint_proofs [POLICIES] [SEED]

A naive interpreter, which shares no code with lint, evaluates every condition and score that a finding is about, for
every pod and node of some small clusters. A finding is false where one of them contradicts it. The bounds of every
expression are held against its values in the same way.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from policyengine.language import ir
from policyengine.language.check import check
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.ir.ir_walk import children, free_locals, rebuilt, walk
from policyengine.language.lint.bounds import Bounds
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.parse import parse_file
from policyengine.language.types import Kind
from tests.compiler import naive
from tests.compiler.naive import Place
from tests.compiler.naive_functions import Nothing, NoValue, Some
from tests.compiler.naive_objects import Cluster
from tests.compiler.worlds import ZONE, PlainNode, PlainPod, World
from tests.language.lint.findings import plugins

POLICIES = 10_000
FAILED = object()
_X = 'node.labels[?"x"]'
_INTS = ("0", "1", "2", "3", "3", "5", "-1", "7", "10", "49", "100", "9223372036854775807", "2147483647")
_DOUBLES = ("0.0", "1.0", "-1.0", "0.5", "3.0", "49.0", "100.0", "701.0", "1e308", "33.333333333333336")
GRAMMAR: dict[str, tuple[str, ...]] = {
    "op": ("<", "<=", ">", ">=", "==", "!="),
    "i": _INTS,
    "d": _DOUBLES,
    "c": ("0", "1m", "250m", "4", "100"),
    "m": ("0", "1Ki", "1Gi", "1048576Gi"),
    "s": ('"a"', '"b"', '""', '"zone-a"'),
    "int": (
        *("pod.priority", "node.podCount", f"toInt({_X}).orValue({{i}})", "size(pod.name)", "most", "{i}"),
        *("({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "(-({int}))"),
        *("clamp({int}, {i}, {i})", "min({int}, {int})", "max({int}, {int})", "abs({int})", "floor({double})"),
        *(
            "round({double})",
            "ceil({double})",
            "int({double})",
            "({bool} ? {int} : {int})",
            "clamp({int}, 0, 49) / {i}",
        ),
        *(f"toInt({_X}).optMap(o, clamp(o, 0, 9)).optMap(o, o * {{i}}).orValue({{i}})", "node.pods.size()"),
        *("node.pods.map(q, q.priority).sum()", "node.pods.map(q, clamp(q.priority, 0, 3)).max().orValue({i})"),
    ),
    "double": (
        *("double({int})", f'double({_X}.orValue("nan"))', f"toDouble({_X}).orValue({{d}})", "{d}", "sqrt({double})"),
        *(
            "exp({double})",
            "exp(701.0 + ratio({double}, {double}))",
            "ln({double})",
            "(clamp({double}, 0.0, {d}) / {d})",
        ),
        *("({double} + {double})", "({double} - {double})", "({double} * {double})", "({double} / {double})"),
        *("ratio({int}, {int})", "ratio({double}, {double})", "clamp({double}, {d}, {d})", "min({double}, {double})"),
        *("max({double}, {double})", "abs({double})", "(-({double}))", "ratio({cpu}, {cpu})", "({memory} / {memory})"),
        *(f"{_X}.optMap(o, ratio({{cpu}}, {{cpu}})).orValue({{d}})", "double({cpu})", "share({double}, {double})"),
        *("optional.of({double}).optMap(o, o * {d}).orValue({d})", "({bool} ? {double} : {double})"),
        *("node.pods.map(q, clamp(double(q.priority), {d}, {d})).avg()", "node.pods.map(q, 0.1).avg()"),
        *("node.pods.map(q, double(q.priority)).sum()", "node.pods.map(q, double(q.priority) + 0.1).stddev()"),
        *("[{double}, {double}].avg()", "[{double}, {double}].sum()", "[{double}, {double}].stddev()"),
    ),
    "cpu": (
        *("node.free.cpu", "node.used.cpu", "node.allocatable.cpu", "pod.requests.cpu", "{c}"),
        *("({cpu} * {i})", "({cpu} * {d})", "({cpu} / {i})", "({cpu} / {d})", "({cpu} - {cpu})", "min({cpu}, {cpu})"),
    ),
    "memory": (
        *("node.free.memory", "node.used.memory", "node.allocatable.memory", "pod.requests.memory", "{m}"),
        *("({memory} + {memory})", "({memory} * {i})", "({memory} / {double})", "clamp({memory}, {m}, {m})"),
    ),
    "string": ("node.zone", "pod.name", f'{_X}.orValue("a")', 'pod.labels[?"app"].orValue("b")', "{s}"),
}
"""What is drawn -> its forms."""
CONDITIONS = (
    *("{term} {op} {const}", "{term} {op} {const}", "{term} {op} {const}", "{term} {op} {other}", "!({bool})"),
    *("({term} {op} {const} && {term} {op} {const})", "({term} {op} {const} || {term} {op} {const})"),
    *("({term} {op} {const} || !({term} {op} {const}))", "(10 / node.podCount > 3 ? {term} {op} {const} : {bool})"),
    *("({bool} && {bool})", "({bool} || {bool})", "({bool} ? {bool} : {bool})", "node.ready", f"{_X}.hasValue()"),
    *("{string} {eq} {s}", "{string} in [{s}, {s}]", "{int} in [{i}, {i}]", "small", "node.pods.exists(q, {bool})"),
)
"""Forms of conditions: `term` is one of a few terms of the policy, so that conditions are about the same."""
FAILING = (("int", "10 / pod.priority"), ("int", "10 / node.podCount"), ("cpu", "node.free.cpu * 4"))
NAN = (
    "sqrt(double(pod.priority))",
    f'double({_X}.orValue("nan"))',
    "1.0 / double(pod.priority)",
    "ln(double(pod.priority))",
)
PRIORITIES = (-(2**31), -5, -1, 0, 1, 2, 3, 4, 5, 7, 8, 49, 50, 100, 700, 2**31 - 1)
LABELS = ("0", "1", "-7", "49", "nan", "inf", "-inf", "a", "b", "", "9223372036854775807", "1e308", "0.1", "zone-a")


class Writer:
    """Writes one policy."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._said: list[str] = []
        self._terms = [("int", "pod.priority"), chance.choice(FAILING), ("double", chance.choice(NAN))]
        kind = chance.choice(("int", "double", "cpu", "memory"))
        self._terms.append((kind, self.text(kind, 3)))

    def text(self, kind: str, depth: int) -> str:
        if kind == "bool":
            return self.condition(depth)
        forms = GRAMMAR[kind]
        if depth <= 0:
            forms = tuple(form for form in forms if "{" not in form) or forms
        return self._filled(self._chance.choice(forms), depth - 1)

    def condition(self, depth: int) -> str:
        """A condition, now and then one that was written before."""
        if self._said and self._chance.random() < 0.15:
            return self._chance.choice(self._said)
        form = self._chance.choice(CONDITIONS if depth > 0 else CONDITIONS[:3])
        kind, term = self._chance.choice(self._terms)
        const = {"int": "i", "double": "d", "cpu": "c", "memory": "m"}[kind]
        other = self._chance.choice([text for of, text in self._terms if of == kind])
        parts = {"{term}": term, "{const}": f"{{{const}}}", "{other}": other, "{eq}": self._chance.choice(("==", "!="))}
        for name, value in parts.items():
            form = form.replace(name, value)
        return self._filled(form, depth - 1)

    def _filled(self, form: str, depth: int) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.text(found[1], depth), form)

    def said(self) -> str:
        self._said.append(self.condition(2))
        return self._said[-1]

    def of_pod(self) -> str:
        """A condition that reads no node."""
        while "node." in (text := self.condition(1)):
            pass
        return text

    def policy(self) -> str:
        chance = self._chance
        lines = ["param most: int = 5 range [1, 10]"]
        share = "optional.of(ratio(a, b)).optMap(r, 100.0 * r).orValue(0.0)"
        lines += [f"function share(a: double, b: double): double = {share}"]
        lines += [f"let small = {self._filled('pod.priority {op} {i} || 10 / pod.priority {op} {i}', 0)}"]
        for name in "fgh"[: chance.randint(1, 3)]:
            when = f" when {self.of_pod()}" if chance.random() < 0.4 else ""
            requires = [self._require() for _ in range(chance.randint(1, 3))]
            lines += [f'filter "{name}"{when} {{ {" ".join(requires)} }}']
        for name in "st":
            on_error = f" on error {self.text('d', 0)}" if chance.random() < 0.3 else ""
            value = f"clamp({self.text('double', 3)}, 0.0, {chance.choice(('1.0', '3.0', '100.0', '200.0'))})"
            lines += [f'score "{name}" weight 1 = {value}{on_error}']
        for name in "ij":
            lines += [f'gang "{name}" when {self.of_pod()} {{ key: pod.namespace min: 2 timeout: 60s }}']
        return 'policy "p" {\n' + "\n".join(lines) + "\n}"

    def _require(self) -> str:
        on_error = self._chance.choice(
            ("", "", "", " on error true", " on error false", f" on error {self.condition(0)}")
        )
        return f"require {self.said()}{on_error}"


def worlds(chance: random.Random) -> list[World]:
    """Small clusters of what is at the edge of something."""
    return [World([_node(chance, n) for n in range(3)]) for _ in range(4)]


def _pod(chance: random.Random, name: str) -> PlainPod:
    labels = {key: chance.choice(LABELS) for key in ("app", "x") if chance.random() < 0.7}
    memory = chance.choice((0, 1, 2**30, 2**45 + 1, 2**60))
    return PlainPod(name, labels, chance.choice((0, 1, 100, 250, 4000)), memory, None, chance.choice(PRIORITIES))


def _node(chance: random.Random, number: int) -> PlainNode:
    labels = {key: chance.choice(LABELS) for key in ("app", "x", "x", ZONE) if chance.random() < 0.8}
    pods = [_pod(chance, f"p{number}-{i}") for i in range(chance.choice((0, 0, 1, 2, 3)))]
    cpu, memory = chance.choice((0, 1, 250, 4000, 2**62)), chance.choice((0, 1, 2**30, 2**45 + 1, 2**63 - 1))
    return PlainNode(f"n{number}", labels, {}, cpu, memory, ready=chance.random() < 0.5, pods=pods)


class Trial:
    """One policy: what lint says of it, and what its expressions are everywhere."""

    def __init__(self, policy: ir.Policy, chance: random.Random) -> None:
        self.policy = policy
        lets = {let.name: let.value for let in policy.lets}
        everywhere = worlds(chance)
        pods = [_pod(chance, f"q{n}") for n in range(6)]
        self.rows = [
            [Place(cluster.pod(pod.name), node, lets, {"most": chance.choice((1, 5, 10))}) for node in cluster.nodes]
            for world in everywhere
            for pod in chance.sample(pods, 3)
            for cluster in [Cluster.of(world, pod.manifest())]
        ]
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
    "PE3304": never_applies,
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


def contradictions(seed: int) -> tuple[list[str], int]:
    """What is false of one generated policy, and how many findings were held against its clusters."""
    chance = random.Random(seed)
    text = Writer(chance).policy()
    source = Source("p.policy", text)
    file, broken = parse_file(source)
    policies, wrong = check(file, source, plugins())
    assert not broken, (text, broken)
    if wrong:
        return [], 0  # a constant without a value, a comparison of what has no order
    trial = Trial(policies[0], chance)
    found = [one for one in lint(source, file, policies, plugins(), Settings()) if one.code in CLAIMS]
    false = [f"{one.code} {one.message}: `{source.slice(one.span)}`" for one in found if not trial.holds(one)]
    false += [line for number, line in enumerate(outside_its_bounds(trial)) if number < 2]
    return [f"seed {seed}: {line}\n{text}" for line in false], len(found)


def main(arguments: list[str]) -> int:
    """1 where a finding is false."""
    count, first = int(arguments[0]) if arguments else POLICIES, int(arguments[1]) if len(arguments) > 1 else 0
    total = 0
    false: list[str] = []
    for seed in range(first, first + count):
        lines, found = contradictions(seed)
        false += lines
        total += found
        for line in lines:
            print(line, flush=True)
    print(f"{count:,} policies, {total:,} findings, {len(false):,} false")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
