"""A small cluster that shows what a finding of lint says: as data, played through the compiled policy, and as a test;
and what is to be seen in it.

An example is plain data, so that parts of it can be left out one by one:

    {"params": {"most": 3}, "nodes": {"a": {"ready": False}}, "standing": {"old": {"on": "a"}},
     "pods": {"p": {"priority": 1}}, "after": 900000000000}

`standing` pods are on a node from the start, `pods` are to be placed; then `after` nanoseconds pass. What happens is
recorded as expectations: the text is a `test` that anyone can put into the policy and run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from policyengine.language import ir
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.syntax import Span
from policyengine.language.types import DURATION, Kind
from policyengine.language.values import display
from policyengine.trials.policy_test import TestedPolicy, played
from policyengine.trials.policy_test_verdict import Run, refusals

Example = dict[str, Any]
POD, NODES = "p", ("a", "b")
"""The pod that a claim is about, and its nodes."""
_NOWHERE = Span(0, 0)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMOUNT = re.compile(r"[0-9]+(m|[KMGTPE]i?)?")
_AMOUNTS = frozenset({"allocatable", "capacity", "requests", "limits"})


def given(example: Example) -> tuple[ir_test.Step, ...]:
    """The steps that make an example's cluster, and let it come to rest."""
    nodes: Mapping[str, Any] = example.get("nodes", {})
    steps: list[ir_test.Step] = []
    for name, value in example.get("params", {}).items():
        steps.append(ir_test.GivenParam(name=name, value=value, span=_NOWHERE))
    for name, fields in nodes.items():
        steps.append(ir_test.GivenNode(name=name, fields=fields, span=_NOWHERE))
    standing = [(name, fields) for name, fields in example.get("standing", {}).items() if fields.get("on") in nodes]
    for name, fields in (*standing, *example.get("pods", {}).items()):
        said = {key: value for key, value in fields.items() if key != "on"}
        steps.append(ir_test.GivenPod(name=name, on=fields.get("on"), fields=said, span=_NOWHERE))
    if example.get("after"):
        steps.append(ir_test.After(duration=example["after"], span=_NOWHERE))
    return tuple(steps)


def play(tested: TestedPolicy, example: Example) -> Run | None:
    """What the compiled policy does in the example; None where it cannot be given."""
    return played(tested, given(example))


def expected(run: Run, example: Example, scores: Iterable[str], in_order: bool) -> list[ir_test.Step]:
    """What happened, as expectations. `scores`: of which rules the scores are shown; `in_order`: whether the order in
    which the pods were given out is."""
    steps: list[ir_test.Step] = []
    pods = list(example["pods"])
    for pod in pods:
        steps += _fate(run, pod)
    attempt = run.attempt(pods[0])
    for rule in scores:
        for node, found in (attempt.scores if attempt is not None else {}).items():
            points = found.get(rule, 0)
            steps.append(
                ir_test.ExpectNumber(pod=pods[0], node=node, rule=rule, least=points, most=points, span=_NOWHERE)
            )
    if in_order and len(pods) == 2:
        first, second = sorted(pods, key=lambda pod: run.trial.popped.index(run.uids[pod]))
        steps.append(ir_test.ExpectBefore(pod=first, other=second, span=_NOWHERE))
    return steps


def _fate(run: Run, pod: str) -> Iterator[ir_test.Step]:
    """Where a pod is, or what refuses it."""
    node = run.trial.node_of(run.uids[pod])
    if node:
        yield ir_test.ExpectOn(pod=pod, node=node, span=_NOWHERE)
    elif run.waits(pod):
        yield ir_test.ExpectWaits(pod=pod, span=_NOWHERE)
    else:
        refused = ir_test.ExpectRejected(pod=pod, node=None, rule=None, span=_NOWHERE)
        found = refusals(run, refused)
        for rule in [] if isinstance(found, str) else list(dict(found))[:1]:
            yield ir_test.ExpectRejected(pod=pod, node=None, rule=rule, span=_NOWHERE)


# --- what is to be seen ----------------------------------------------------------------------------------


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


def wanted(expr: ir.Expr | None, outcome: bool) -> Want:
    """A condition has an outcome: taken apart at `&&`, `||`, `!` and `?:`. Of a condition that is not written nothing
    is wanted."""
    match expr:
        case None:
            return Want()
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


# --- as text ---------------------------------------------------------------------------------------------


def as_test(name: str, notes: Iterable[str], steps: Iterable[ir_test.Step], policy: ir.Policy) -> str:
    """The steps as a `test` of the policy, with notes as comments."""
    types = {param.name: param for param in policy.params}
    lines = [*(f"// {note}" for note in notes), *(_line(step, types) for step in steps)]
    return "\n".join([f"test {_quoted(name)} {{", *(f"  {line}" for line in lines), "}"])


def _line(step: ir_test.Step, params: Mapping[str, ir.Param]) -> str:
    match step:
        case ir_test.GivenParam(name=name, value=value):
            shown = display(value, params[name].type)
            return f"given param {name} = {_quoted(shown) if isinstance(value, str) else shown}"
        case ir_test.GivenNode(name=name, fields=fields):
            return f"given node {_quoted(name)} {_written(fields)}"
        case ir_test.GivenPod(name=name, on=on, fields=fields):
            return f"given pod {_quoted(name)} {f'on {_quoted(on)} ' if on else ''}{_written(fields)}"
        case ir_test.After(duration=duration):
            return f"after {display(duration, DURATION)}"
        case ir_test.ExpectOn(pod=pod, node=node):
            return f"expect {_quoted(pod)} on {_quoted(node)}"
        case ir_test.ExpectWaits(pod=pod):
            return f"expect {_quoted(pod)} waits"
        case ir_test.ExpectBefore(pod=pod, other=other):
            return f"expect {_quoted(pod)} before {_quoted(other)}"
        case ir_test.ExpectRejected(pod=pod, rule=rule):
            return f"expect {_quoted(pod)} rejected by {_quoted(rule or '')}"
        case ir_test.ExpectNumber(pod=pod, node=node, rule=rule, least=points):
            return f"expect that score({', '.join(map(_quoted, (rule or '', pod, node)))}) == {points}"
    raise AssertionError(step)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _written(value: object, amounts: bool = False) -> str:
    """A value as it is given in a policy."""
    match value:
        case dict():
            inner = (
                f"{key if _WORD.fullmatch(key) else _quoted(key)}: {_written(one, amounts or key in _AMOUNTS)}"
                for key, one in value.items()
            )
            return f"{{ {', '.join(inner)} }}" if value else "{}"
        case list():
            return f"[{', '.join(_written(one, amounts) for one in value)}]"
        case str() if not (amounts and _AMOUNT.fullmatch(value)):
            return _quoted(value)
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)


def is_literal(param: ir.Param) -> bool:
    """Whether values of a param can be written as one literal."""
    return param.type.kind in (Kind.INT, Kind.BOOL, Kind.STRING, Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION)
