"""Functions of a policy: checked where they are declared, meaning their body where they are called."""

from __future__ import annotations

import pytest

from policyengine.language import ir
from policyengine.language.ir.ir_walk import fields, walk
from policyengine.language.types import Shape
from tests.language.checking import findings, policy


def reads(found: ir.Policy, expr: ir.Expr) -> set[str]:
    values = {let.name: let.value for let in found.lets}
    return {".".join(read.path) for read in fields(expr, values.get)}


def test_an_argument_may_be_a_column_or_a_single_value() -> None:
    found = policy("""
        function half(amount: cpu): cpu = amount / 2
        filter "f" { require half(node.free.cpu) >= half(pod.requests.cpu) }
    """)
    condition = found.filters[0].requires[0].condition
    assert condition.shape is Shape.NODE
    assert reads(found, condition) == {"node.free.cpu", "pod.requests.cpu"}
    assert [part.shape for part in walk(condition) if isinstance(part, ir.LetRef)] == [Shape.NODE, Shape.SCALAR]


def test_equal_calls_are_worked_out_once() -> None:
    found = policy("""
        function f(a: int): int = a * a
        let x = f(pod.priority + 1) + f(pod.priority + 1)
    """)
    (x,) = (let for let in found.lets if let.name == "x")
    left, right = (part for part in walk(x.value) if isinstance(part, ir.LetRef))
    assert left.name == right.name


def test_functions_call_functions_and_read_lets_and_params_in_any_order() -> None:
    found = policy("""
        let x = outer(pod.priority)
        function outer(a: int): int = inner(a) + least
        function inner(a: int): int = a + base
        let base = pod.labels.size()
        param least: int = 3
    """)
    (x,) = (let for let in found.lets if let.name == "x")
    assert reads(found, x.value) == {"pod.priority", "pod.labels"}


def test_a_function_s_body_is_guarded_by_what_it_asks_itself_and_a_call_guards_what_follows() -> None:
    policy("""
        function has_app(labels: map(string, string)): bool = "app" in labels
        function app(labels: map(string, string)): string = "app" in labels ? labels["app"] : ""
        filter "f" when has_app(pod.labels) { require pod.labels["app"] == app(node.labels) }
    """)


def test_a_pod_and_a_node_may_be_handed_over() -> None:
    found = policy("""
        function gpus(p: pod): int = p.requests[?"nvidia.com/gpu"].orValue(0)
        function room(n: node, asked: memory): bool = n.free.memory >= asked
        preempt { victims: gpus(victim) > gpus(pod) }
        filter "f" { require room(node, pod.requests.memory) }
    """)
    assert found.preempt is not None and found.preempt.victims is not None
    assert reads(found, found.preempt.victims) == {"victim.requests", "pod.requests"}
    assert reads(found, found.filters[0].requires[0].condition) == {"node.free.memory", "pod.requests.memory"}


def test_a_variable_of_a_macro_may_be_handed_over_without_meeting_the_body_s_own() -> None:
    found = policy("""
        function below(limit: int): bool = [1, 2].all(x, x < limit)
        let a = [3, 4].all(x, below(x))
    """)
    from policyengine.language.scalar_evaluator import evaluated

    assert evaluated(found.lets[-1].value) is True


def test_a_cycle_is_one_finding_that_names_it() -> None:
    found = findings("""
        function f(a: int): int = g(a) + 1
        function g(a: int): int = h(a) + f(a)
        function h(a: int): int = f(a)
        let x = f(1) + g(2)
    """)
    assert [finding.code for finding in found] == ["PE1014"]
    assert "`f` -> `g` -> `f`" in found[0].message


def test_a_function_that_was_reported_is_not_reported_where_it_is_called() -> None:
    found = findings("function f(a: int): int = a + nothing\nlet x = f(1)\nlet y = f(pod.nmae)")
    assert [finding.code for finding in found] == ["PE1001", "PE1002"]


def test_what_only_a_call_makes_wrong_is_reported_at_the_call() -> None:
    (found,) = findings("function f(a: int): int = 10 / a\nlet x = f(0)")
    assert found.message.startswith("in `f`: ")


def chain(levels: int, call: str) -> str:
    functions = ["function f0(a: int): int = a + 1"]
    functions += [f"function f{n}(a: int): int = {call.format(n - 1)}" for n in range(1, levels)]
    return "\n".join([*functions, f"let x = f{levels - 1}(pod.priority)"])


def test_calls_that_double_with_equal_arguments_cost_nothing() -> None:
    assert not findings(chain(9, "f{0}(a) + f{0}(a)"))


@pytest.mark.parametrize("call", ["f{0}(a + 1) + f{0}(a + 2)", "f{0}(f{0}(a + 1) + 2)"])
def test_calls_that_blow_up_are_refused_soon(call: str) -> None:
    found = findings(chain(40, call))
    assert {finding.code for finding in found} == {"PE2019"}


def test_arguments_that_blow_up_in_a_macro_are_refused() -> None:
    nested = "x"
    for _ in range(20):
        nested = f"f({nested})"
    found = findings(f"function f(a: int): int = a + a\nlet x1 = [1].all(x, {nested} > 0)")
    assert {finding.code for finding in found} == {"PE2019"}


def line(count: int, step: str) -> str:
    """Functions `f0`, `f1`, … of which each calls the one before."""
    later = (f"function f{at}(x: int): int = {step.format(at - 1)}" for at in range(1, count))
    return "\n".join(("function f0(x: int): int = x", *later))


@pytest.mark.parametrize("step", ["f{}(x)", "f{}(x) + 1", "f{}(x) + f{}(x + 1)".replace("{}", "{0}")])
def test_functions_that_call_each_other_too_deep_are_told(step: str) -> None:
    call = 'filter "f" { require node.pods.all(v, f%d(v.priority) > 0) }'
    policy(f"{line(3, step)} {call % 2}")
    found = findings(f"{line(90, step)} {call % 89}")
    assert {one.code for one in found} == {"PE2019"}


def test_a_call_of_a_function_that_is_wrong_inside_is_silent_however_many_call_it() -> None:
    found = findings(f"{line(200, 'f{}(x)').replace('int = x', 'int = nothing')} let y = f199(pod.priority)")
    assert [one.message for one in found] == ['nothing is called `nothing`; text stands in quotes: `"nothing"`']
