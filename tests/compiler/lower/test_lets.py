"""A let costs what it costs once: lowered once for a rule, evaluated at most once for a decision, at any depth."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import PodGroup
from policyengine.compiler.columns.frame import Scalar, Vector
from policyengine.compiler.columns.list_elements import Found, node_pods
from policyengine.compiler.coverage import Coverage
from policyengine.compiler.lower import list_aggregates
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.language.types import Shape
from policyengine.policy_compiler import checked, compile_checked, compile_policy
from tests.compiler.worlds import PlainNode, PlainPod, World

WORLD = World([PlainNode("a", pods=[PlainPod("x", priority=5)]), PlainNode("b", cpu=8000), PlainNode("c")], [])
POD = PlainPod("p", priority=3).info()


class Counted(Coverage):
    """Counts how often the value of each let is evaluated, for each pod."""

    def __init__(self, policy: ir.Policy) -> None:
        super().__init__(policy)
        self.counts = Counter[tuple[str, str]]()
        self._lets = {id(let.value): let.name for let in policy.lets}

    def scalar(self, expr: ir.Expr, closure: Scalar) -> Scalar:
        return self._counting(expr, closure)

    def vector(self, expr: ir.Expr, closure: Vector) -> Vector:
        return self._counting(expr, closure) if expr.shape is not Shape.SCALAR else closure

    def _counting(self, expr: ir.Expr, closure: Any) -> Any:
        name = self._lets.get(id(expr))
        if name is None:
            return closure

        def counting(where: Any) -> Any:
            pod = getattr(where, "pod", None)
            self.counts[name, "" if pod is None else pod.name] += 1
            return closure(where)

        return counting


def text(lets: list[str], rules: str) -> str:
    lines = "\n".join(f"let a{place} = {let}" for place, let in enumerate(lets))
    return f'policy "p" {{ base none\n{lines}\n{rules}\n}}'


def scores(profile: Profile) -> list[int]:
    """The score of each node, by name."""
    evaluator, snapshot = Evaluator(profile), WORLD.snapshot()
    found = evaluator.score(POD, snapshot, evaluator.filter(POD, snapshot))
    return [int(share.scores.sum()) for share in found.shares]


# --- evaluated once ----------------------------------------------------------------------------------------

POD_FORMS = ("{} + {}", "{} > 3 ? {} + 1 : {}", "[{}, {}].max().orValue(0)", "{} > 2 && {} < 9 ? 1 : {}")
FORMS = (
    *POD_FORMS, "node.pods.filter(v, v.priority > {}).size() + {}", "node.pods.map(v, v.priority + {}).sum() - {}",
)  # fmt: skip
POD_LEAVES = ("pod.priority", "pod.name.size()", "pod.labels.size()")
LEAVES = (*POD_LEAVES, "node.podCount", "cluster.nodeCount", "pods.map(v, v.priority).sum()")


@st.composite
def let_values(draw: st.DrawFn) -> tuple[list[str], int]:
    """Lets that name each other in every way, and how many of them, the first, read the pod alone."""
    lets: list[str] = []
    for leaves, forms in ((POD_LEAVES, POD_FORMS), (LEAVES, FORMS)):
        of_pod = len(lets)
        lets += [draw(st.sampled_from(leaves)) for _ in range(draw(st.integers(1, 3)))]
        for _ in range(draw(st.integers(1, 6))):
            form = draw(st.sampled_from(forms))
            lets.append(form.format(*(f"a{draw(st.integers(0, len(lets) - 1))}" for _ in range(form.count("{}")))))
    return lets, of_pod


RULES = """
queue {{ order by {pod} desc, {pod} + {other} fair by string({pod}) }}
gang "g" when {pod} > -1000000 {{ key: string({other}) min: {pod} timeout: 1min * {pod} waits: 1s * {other} }}
quota "q" when {pod} == {pod} {{ limit: {{cpu: 9}} borrow: {other} > 0 }}
quota "r" when {pod} == {other} || {pod} != {other} {{ guarantee: {{memory: 1}} borrow: {other} == {pod} }}
filter "f" when {pod} > -1000000 {{
  require {0} > -100000000 && {1} == {1}
  require node.name != "a" else "{{{0}}} {{{pod}}}"
  require node.name != "b" else "{{{1}}} {{{0}}}"
}}
filter "h" {{ require {1} < 100000000000 && node.name != "c" else "{{{1}}}" }}
score "s" weight 1 normalize minmax = {0} + {2}
score "t" weight 1 normalize max = {1} + {2}
preempt when {pod} > -1000000 {{ victims: victim.priority + {pod} < {other} order by victim.priority + {pod} }}
permit "u" when {0} > -1000000 {{ until: {1} > 1000000 timeout: 1s * {pod} }}
permit "v" when {1} == {1} {{ delay: 1s * {2} }}
on reserve when {pod} == {0} || {1} == {1} log "{{{0}}} {{{pod}}}"
on postBind log "{{{1}}} {{{0}}}"
bind {{ annotations: {{"a/b": "{{{1}}} {{{2}}}", "a/c": "{{{1}}}"}} }}
"""


def decided(profile: Profile) -> None:
    """All that a profile says of one pod at one moment."""
    view = WORLD.view()
    snapshot, node = view.snapshot(), "b"
    profile.queue_key(POD, 0.0)
    assert profile.fair is not None and profile.preempt is not None
    profile.fair.tenant(POD)
    for gang in profile.gangs:
        assert gang.key(POD) is not None
        gang.minimum(POD), gang.timeout(POD), gang.waits(POD)
    assert profile.quotas.groups(POD) == ("q", "r")
    for quota in profile.quotas.rules:
        quota.may_borrow(POD, snapshot)
    evaluator = Evaluator(profile)
    diagnosis = evaluator.filter(POD, snapshot)
    assert diagnosis.counts() and not len(diagnosis.feasible)
    list(diagnosis.refusals(np.arange(snapshot.nodes.n)))
    for scorer, _ in profile.scores:
        scorer.score(scorer.pre_score(POD, snapshot)[1], snapshot, np.arange(snapshot.nodes.n))
    asked = profile.preempt(POD, view)
    assert asked is not None
    for victim in (PlainPod(name, priority=2).info() for name in ("v", "w")):
        asked.may_go(victim), asked.turn(victim), profile.quotas.groups(victim)
    for log in profile.logs:
        log.line(POD, node, snapshot)
    for rule in profile.permit:
        rule.permit(POD, node, snapshot, 0.0)
    for annotation in profile.annotations:
        annotation.value(POD, node, snapshot)


@given(let_values(), st.data())
@settings(max_examples=60)
def test_a_let_is_evaluated_at_most_once_for_a_decision(lets: tuple[list[str], int], data: st.DataObject) -> None:
    values, of_pod = lets
    names = [f"a{data.draw(st.integers(0, len(values) - 1))}" for _ in range(3)]
    pod, other = (f"a{data.draw(st.integers(0, of_pod - 1))}" for _ in range(2))
    policies, findings = checked(Source("p", text(values, RULES.format(*names, pod=pod, other=other))))
    assert not [finding for finding in findings if finding.severity.name == "ERROR"], findings
    watch = Counted(policies[0])
    profile = compile_checked(policies[0], watch)
    assert isinstance(profile, Profile)
    watch.counts.clear()
    decided(profile)
    assert all(count == 1 for count in watch.counts.values()), (lets, watch.counts)


def test_a_let_that_reads_the_group_follows_it() -> None:
    rules = 'gang "g" { key: pod.name min: a0 timeout: 1min }'
    [gang] = compile_policy(text(["podGroup.?minMember.orValue(1)"], rules)).gangs
    pod = PlainPod("p").info()
    assert gang.minimum(pod) == 1
    pod.group = decode(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 3}})
    assert gang.minimum(pod) == 3


def test_a_list_that_is_a_let_is_found_once_for_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def counting(frame: Any) -> Found:
        asked.append(frame)
        return node_pods(frame)

    monkeypatch.setitem(list_aggregates._SOURCES, ("node", "pods"), counting)
    profile = compile_policy(
        text(
            ["node.pods.filter(v, v.priority > 1)", "a0.map(v, v.priority + pod.priority)", "a1.map(v, v + v)"],
            'filter "f" { require a0.size() < 9 && a1.sum() < 99 } '
            'score "s" weight 1 normalize max = a1.sum() + pod.priority '
            'score "t" weight 1 normalize max = 7 * pod.priority + a2.sum() + a2.max().orValue(0)',
        )
    )
    assert scores(profile) == [100 + 27 + 27, 100 + 39 + 39]
    assert len(asked) == 1


# --- at any depth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "form", "count", "last"),
    [
        ("node.podCount", "{0} + 1", 1200, "{0}"),
        ("node.podCount", "{0} - {0}", 1200, "{0}"),
        ("node.podCount", "{0} > 3 ? {0} - 1 : {0}", 1200, "{0}"),
        ("pod.priority", "{0} + 1", 1200, "{0} + node.podCount"),
        ("pod.priority > 1", "{0} && {0}", 1200, "{0} ? node.podCount : 2"),
        ("pods.size()", "pods.filter(v, v.priority > {0}).size()", 400, "{0} + node.podCount"),
        ("node.podCount", "node.pods.filter(v, v.priority > {0}).size()", 400, "{0}"),
        ("node.pods", "{0}.filter(v, v.priority > 1)", 400, "{0}.size()"),
        ("node.pods.map(v, v.priority)", "{0}.map(v, v - v)", 200, "{0}.sum()"),
    ],
)
def test_a_chain_of_lets_compiles_and_decides(first: str, form: str, count: int, last: str) -> None:
    lets = [first, *(form.format(f"a{place}") for place in range(count))]
    rules = f'score "s" weight 1 normalize max = {last.format(f"a{count}")}'
    assert len(scores(compile_policy(text(lets, rules)))) == 1


def test_what_a_let_at_any_depth_says_is_right() -> None:
    lets = ["node.podCount", *(f"a{place} + 1" for place in range(499))]
    assert scores(compile_policy(text(lets, 'score "s" weight 1 = clamp(a499 - 490, 0, 100)'))) == [9 + 9 + 10]


def test_a_branch_that_is_not_taken_is_not_evaluated() -> None:
    lets = ["node.podCount + 1", "node.podCount + 2"]
    [policy], _ = checked(Source("p", text(lets, 'score "s" weight 1 = clamp(pod.priority > 1 ? a0 : a1, 0, 9)')))
    watch = Counted(policy)
    profile = compile_checked(policy, watch)
    assert isinstance(profile, Profile)
    scores(profile)
    assert watch.counts == {("a0", ""): 1}
