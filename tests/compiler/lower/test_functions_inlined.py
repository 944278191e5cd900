"""A call means its body: a policy with functions decides as one with the bodies written out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.policy_compiler import compile_policy
from tests.builders import make_node, make_pod
from tests.compiler.rules.test_rules import cluster
from tests.compiler.worlds import PlainPod, World, plain_pods, worlds

FUNCTIONS = """
  function free_after(n: node, asked: cpu): cpu = n.free.cpu - asked
  function share_of(part: cpu, whole: cpu): double = 100 * ratio(part, whole)
  function app(labels: map(string, string)): string = "app" in labels ? labels["app"] : "none"
  function below(values: list(int), limit: int): bool = values.all(x, x < limit)
  function tenth(a: int): int = 10 / a
  function tenth_of_tenth(a: int): int = tenth(tenth(a) - 1)
"""
PAIRS = [
    ("free_after(node, pod.requests.cpu) >= 500m", "node.free.cpu - pod.requests.cpu >= 500m"),
    (
        "app(node.labels) == app(pod.labels)",
        '("app" in node.labels ? node.labels["app"] : "none") == ("app" in pod.labels ? pod.labels["app"] : "none")',
    ),
    (
        "below([1, node.podCount], 3) && share_of(node.used.cpu, node.allocatable.cpu) < 60.0",
        "[1, node.podCount].all(x, x < 3) && 100 * ratio(node.used.cpu, node.allocatable.cpu) < 60.0",
    ),
    ("[3, 4].exists(x, below([x, node.podCount + 2], x + 1))", "node.podCount < 3"),
    (
        "node.pods.exists(x, below([x.priority, 1], 8) && x.priority == 7)",
        "node.pods.exists(y, y.priority < 8 && y.priority == 7)",
    ),
    ("tenth(node.podCount) > 3 || node.labels.size() > 0", "10 / node.podCount > 3 || node.labels.size() > 0"),
    ("tenth_of_tenth(node.podCount) >= 0", "10 / (10 / node.podCount - 1) >= 0"),
]


def told(condition: str, functions: str, pod: PodInfo, snapshot: Snapshot) -> list[tuple[str, bool]]:
    """For each node: the code of its refusal, and whether that is because the condition has no value."""
    profile = compile_policy(f'policy "p" {{ base none {functions} filter "f" {{ require {condition} else "no" }} }}')
    evaluated = Evaluator(profile).filter(pod, snapshot)
    statuses = [evaluated.refusal(int(row)) for rows in evaluated.by_plugin().values() for row in rows]
    return [(status.code.name, status.reasons == ("no",)) for status in statuses]


@pytest.mark.parametrize(("called", "written"), PAIRS)
@given(worlds(), plain_pods())
@settings(max_examples=15, deadline=None)
def test_a_call_decides_as_its_body(called: str, written: str, world: World, pod: PlainPod) -> None:
    snapshot = world.snapshot()
    assert told(called, FUNCTIONS, pod.info(), snapshot) == told(written, "", pod.info(), snapshot)


def test_an_error_in_a_call_is_where_the_call_is() -> None:
    empty = cluster(make_node("a").capacity(cpu="4", pods=10))
    assert told("tenth(node.podCount) > 3", FUNCTIONS, make_pod().info(), empty) == [("UNSCHEDULABLE", False)]
