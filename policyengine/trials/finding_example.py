"""A small cluster that shows what a finding of lint says: as data, played through the compiled policy, and as a test.

An example is plain data, so that parts of it can be left out one by one:

    {"params": {"most": 3}, "nodes": {"a": {"ready": False}}, "standing": {"old": {"on": "a"}},
     "pods": {"p": {"priority": 1}}, "after": 900000000000}

`standing` pods are on a node from the start, `pods` are to be placed; then `after` nanoseconds pass. What happens is
recorded as expectations: the text is a `test` that anyone can put into the policy and run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from policyengine.language import ir
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.syntax import Span
from policyengine.language.types import DURATION, Kind
from policyengine.language.values import display
from policyengine.trials.policy_test import TestedPolicy, played, run_tests
from policyengine.trials.policy_test_verdict import Run, refusals

Example = dict[str, Any]
_NOWHERE = Span(0, 0)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMOUNT = re.compile(r"[0-9]+(m|[KMGTPE]i?)?")
_AMOUNTS = frozenset({"allocatable", "capacity", "requests", "limits"})


def given(example: Example) -> tuple[ir_test.Step, ...]:
    """The steps that make an example's cluster, and let it come to rest."""
    nodes: Mapping[str, Any] = example.get("nodes", {})
    standing = [
        ir_test.GivenPod(name=name, on=fields["on"], fields=_without_on(fields), span=_NOWHERE)
        for name, fields in example.get("standing", {}).items()
        if fields.get("on") in nodes
    ]
    return (
        *(
            ir_test.GivenParam(name=name, value=value, span=_NOWHERE)
            for name, value in example.get("params", {}).items()
        ),
        *(ir_test.GivenNode(name=name, fields=fields, span=_NOWHERE) for name, fields in nodes.items()),
        *standing,
        *(
            ir_test.GivenPod(name=name, on=None, fields=fields, span=_NOWHERE)
            for name, fields in example.get("pods", {}).items()
        ),
        *([ir_test.After(duration=example["after"], span=_NOWHERE)] if example.get("after") else []),
    )


def _without_on(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name != "on"}


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
    elif waits(run, pod):
        yield ir_test.ExpectWaits(pod=pod, span=_NOWHERE)
    else:
        refused = ir_test.ExpectRejected(pod=pod, node=None, rule=None, span=_NOWHERE)
        found = refusals(run, refused)
        for rule in [] if isinstance(found, str) else list(dict(found))[:1]:
            yield ir_test.ExpectRejected(pod=pod, node=None, rule=rule, span=_NOWHERE)


def waits(run: Run, pod: str) -> bool:
    """Whether a gang or a permit holds the pod."""
    return run.trial.state.place(run.uids[pod]) in ("held", "waiting at permit")


def holds(tested: TestedPolicy, steps: tuple[ir_test.Step, ...]) -> bool:
    """Whether the steps are a test that passes."""
    test = ir_test.Test(name="", steps=steps, span=_NOWHERE)
    return all(outcome.passed for outcome in run_tests(replace(tested, tests=(test,))))


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
