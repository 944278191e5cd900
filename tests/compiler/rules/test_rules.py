"""Rules as plugins: refusals and their texts, normalisation, signatures, events, and columns that stay fresh."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyengine.cluster.events import ActionType, Resource
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import QueueingHint
from policyengine.framework.plugin import Reads, SituationReader
from policyengine.framework.profile import Profile
from policyengine.policy_compiler import compile_policy
from tests.builders import PodBuilder, make_node, make_pod


def policy(members: str) -> Profile:
    return compile_policy(f'policy "t" {{ base none\n{members}\n}}')


def cluster(*nodes: Any) -> Snapshot:
    view = ClusterView()
    for node in nodes:
        view.add_or_update_node(node.build())
    return view.snapshot()


def node(name: str, cpu: str = "4", memory: str = "8Gi") -> Any:
    return make_node(name).capacity(cpu=cpu, memory=memory, pods=110)


def refusal(profile: Profile, pod: PodBuilder, snapshot: Snapshot, row: int = 0) -> tuple[str, str, tuple[str, ...]]:
    status = Evaluator(profile).filter(pod.info(), snapshot).refusal(row)
    return status.plugin, status.code.wire_name, status.reasons


# --- filters -----------------------------------------------------------------------------------------------

REFUSALS = {
    "the first require that fails is reported": (
        'filter "f" { require node.podCount < 0 else "first" require node.free.cpu > 100 else "second" }',
        ("Unschedulable", "first"),
    ),
    "without a text the condition is shown as written": (
        'filter "f" { require node.free.cpu  >=\n 100 }',
        ("Unschedulable", "f: `node.free.cpu >= 100` is false"),
    ),
    "an eviction gives room": (
        'filter "f" { require node.free.cpu > 100 else "no" }',
        ("Unschedulable", "no"),
    ),
    "an eviction leaves fewer pods": (
        'filter "f" { require node.podCount > 100 else "no" }',
        ("Unschedulable", "no"),
    ),
    "an eviction is seen through lets": (
        'let room = node.free.cpu filter "f" { require room > 100 else "no" }',
        ("Unschedulable", "no"),
    ),
    "no eviction makes a node larger": (
        'filter "f" { require node.allocatable.cpu > 100 else "no" }',
        ("UnschedulableAndUnresolvable", "no"),
    ),
    "no eviction changes the pod": (
        'filter "f" { require pod.priority > 100 else "no" }',
        ("UnschedulableAndUnresolvable", "no"),
    ),
    "an error refuses the node and says why": (
        'filter "f" { require 10 / (node.podCount - 0) > 1 else "no" }',
        ("Unschedulable", "f: `10 / (node.podCount - 0) > 1` has no value: division by zero"),
    ),
    "an error about the pod refuses it and says why": (
        'filter "f" { require 10 / pod.priority > 1 else "no" }',
        ("UnschedulableAndUnresolvable", "f: `10 / pod.priority > 1` has no value: division by zero"),
    ),
}


@pytest.mark.parametrize(("members", "refused"), REFUSALS.values(), ids=REFUSALS)
def test_a_node_is_refused_with_a_code_and_a_text(members: str, refused: tuple[str, str]) -> None:
    code, text = refused
    assert refusal(policy(members), make_pod(), cluster(node("a"))) == ("f", code, (text,))


def test_a_text_is_filled_in_for_each_node() -> None:
    profile = policy(
        'param least: memory = 9Gi filter "f" { require node.free.memory >= least'
        ' else "needs {least}, has {node.free.memory} of {{x}}" }'
    )
    snapshot = cluster(node("a"), node("b", memory="4Gi"))
    assert refusal(profile, make_pod(), snapshot, 0)[2] == ("needs 9Gi, has 8Gi of {x}",)
    assert refusal(profile, make_pod(), snapshot, 1)[2] == ("needs 9Gi, has 4Gi of {x}",)
    assert Evaluator(profile).filter(make_pod().info(), snapshot).counts() == [("needs 9Gi, has 8Gi of {x} (a)", 2)]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ('require node.ready require pod.priority > 5 else "priority {pod.priority} is low"', "priority 3 is low"),
        ('require pod.priority > 5 else "not on {node.name}"', "f: `pod.priority > 5` is false"),
    ],
)
def test_a_require_without_a_node_refuses_the_pod_once_in_words_without_one(members: str, text: str) -> None:
    profile = policy(f'filter "f" {{ {members} }}')
    refused = Evaluator(profile).filter(make_pod().priority(3).info(), cluster(node("a"))).pre_filter
    assert refused is not None and (refused.plugin, refused.reasons) == ("f", (text,))


def test_optionals_are_equal_where_both_are_empty_or_hold_the_same() -> None:
    profile = policy('filter "f" { require pod.labels[?"a"] == node.labels[?"b"] }')
    snapshot = cluster(node("x").label("b", "1"), node("y").label("b", "2"), node("z"))
    for pod, fits in ((make_pod().label("a", "1"), [0]), (make_pod().label("a", "3"), []), (make_pod(), [2])):
        assert list(Evaluator(profile).filter(pod.info(), snapshot).feasible) == fits


@pytest.mark.parametrize(
    ("rule", "feasible"),
    [
        ("{ require 10 / node.podCount > 1 on error true }", 1),
        ("{ require 10 / node.podCount > 1 on error false }", 0),
        ("{ require 10 / node.podCount > 1 on error node.podCount == 0 }", 1),
        ("{ require 10 / pod.priority > 1 on error true }", 1),
        ("when pod.priority > 0 { require false }", 1),
        ("when pod.priority == 0 { require false }", 0),
        ("when 1 / pod.priority > 0 { require node.podCount > 0 }", 0),
    ],
)
def test_when_and_on_error_decide_whom_a_filter_lets_pass(rule: str, feasible: int) -> None:
    profile = policy(f'filter "f" {rule}')
    assert len(Evaluator(profile).filter(make_pod().priority(0).info(), cluster(node("a"))).feasible) == feasible


def test_an_error_in_when_counts_as_false_for_a_score() -> None:
    profile = policy('score "s" weight 1 when 1 / pod.priority > 0 = 100')
    assert profile.scores[0][0].pre_score(make_pod().priority(0).info(), cluster(node("a")))[0].is_skip


# --- signatures, reads and events --------------------------------------------------------------------------


def signatures(profile: Profile, *pods: PodBuilder) -> list[Any]:
    return [profile.filters[0].signature(pod.info()) for pod in pods]


@pytest.mark.parametrize(
    ("rule", "other", "is_shared"),
    [
        ("{ require node.zone == team }", make_pod("b").label("team", "x").label("app", "1"), True),
        ("{ require node.zone == team }", make_pod("b"), False),
        ('{ require node.ready else "no place for {pod.name}" }', make_pod("b").label("team", "x"), False),
        ("when pod.priority > 0 { require node.name == pod.name }", make_pod("b"), True),
    ],
    ids=["labels that nobody reads", "a label read through a let", "what only a text reads", "a rule for neither"],
)
def test_pods_share_a_signature_where_no_rule_tells_them_apart(rule: str, other: PodBuilder, is_shared: bool) -> None:
    profile = policy(f'let team = pod.labels[?"team"].orValue("") filter "f" {rule}')
    one, another = signatures(profile, make_pod("a").label("team", "x"), other)
    assert (one == another) is is_shared


def test_a_rule_that_reads_the_cluster_shares_while_the_situation_is_the_same() -> None:
    profile = policy('filter "f" { require node.podCount < cluster.nodeCount }')
    a, b = signatures(profile, make_pod("a"), make_pod("a"))
    assert a == b
    (rule,) = profile.filters
    assert isinstance(rule, SituationReader) and rule.situation is not None
    view = ClusterView()
    before = rule.situation(make_pod("a").info(), view.snapshot())
    view.add_or_update_node(make_node("n").build())
    assert rule.situation(make_pod("a").info(), view.snapshot()) != before


def test_a_rule_that_reads_the_cluster_sees_it_change() -> None:
    profile = policy('filter "f" { require cluster.pendingCount < 2 else "too many wait" }')
    view = ClusterView()
    view.add_or_update_node(node("a").build())
    evaluator, pod = Evaluator(profile), make_pod("p")
    view.add_or_update_pod(pod.build())
    assert len(evaluator.filter(pod.info(), view.snapshot()).feasible) == 1
    view.add_or_update_pod(make_pod("q").build())
    assert evaluator.filter(pod.info(), view.snapshot()).pre_filter is not None


@pytest.mark.parametrize(
    ("condition", "reads"),
    [
        ("pod.priority > 0", Reads.NOTHING),
        ("node.ready", Reads.NODE),
        ("node.used.cpu > 0", Reads.NODE | Reads.PODS),
    ],
)
def test_reads_follow_from_the_reach(condition: str, reads: Reads) -> None:
    assert policy(f'filter "f" {{ require {condition} }}').filters[0].reads == reads


def registered(profile: Profile) -> dict[Resource, ActionType]:
    events: dict[Resource, ActionType] = {}
    for one in profile.events_of("f"):
        events[one.event.resource] = events.get(one.event.resource, one.event.action) | one.event.action
    return events


def test_events_follow_from_the_fields_read() -> None:
    profile = policy(
        "let free = node.free.memory"
        ' filter "f" when pod.labels[?"x"].hasValue() { require free > 1 || "y" in node.labels }'
    )
    assert registered(profile) == {
        Resource.NODE: ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL,
        Resource.ASSIGNED_POD: ActionType.DELETE | ActionType.UPDATE_POD | ActionType.UPDATE_OTHER,
        Resource.UNSCHEDULED_POD: ActionType.UPDATE_POD_LABEL,
    }


def test_a_rule_about_the_pod_alone_waits_for_the_pod_alone() -> None:
    profile = policy('filter "f" { require pod.labels[?"x"].hasValue() }')
    (event,) = profile.events_of("f")
    assert event.event.resource is Resource.UNSCHEDULED_POD
    refused = make_pod("p").info()
    assert event.hint is not None
    assert event.hint(refused, None, make_pod("p").label("x", "").info()) is QueueingHint.QUEUE
    assert event.hint(refused, None, make_pod("q").info()) is QueueingHint.SKIP


# --- scores ------------------------------------------------------------------------------------------------


def scores(member: str, *nodes: Any, pod: PodBuilder | None = None) -> list[int]:
    profile = policy(member)
    snapshot = cluster(*nodes)
    info = (pod or make_pod()).info()
    evaluator = Evaluator(profile)
    node_scores = evaluator.score(info, snapshot, evaluator.filter(info, snapshot))
    return list(node_scores.total)


SIZES = [node("a", "1"), node("b", "2"), node("c", "4")]
COSTS = [node("a").label("cost", "10"), node("b").label("cost", "20"), node("c")]
COUNTS = [node("a").label("n", "1"), node("b").label("n", "2"), node("c")]
QUOTIENT = 'score "s" weight 1 normalize max reverse = 12.0 / double(toInt(node.labels[?"n"]).orValue(0))'
SCORES: dict[str, tuple[str, list[Any], list[int]]] = {
    "in parts of the greatest": ('score "s" weight 1 normalize max = node.allocatable.cpu / 1m', SIZES, [25, 50, 100]),
    "the greatest is the worst": (
        'score "s" weight 1 normalize max reverse = node.allocatable.cpu / 1m', SIZES, [75, 50, 0],
    ),
    "from the least to the greatest": (
        'score "s" weight 1 normalize minmax = node.allocatable.cpu / 1m', SIZES, [0, 33, 100],
    ),
    "from the greatest to the least": (
        'score "s" weight 1 normalize minmax reverse = node.allocatable.cpu / 1m', SIZES, [100, 66, 0],
    ),
    "all the same, of the greatest": ('score "s" weight 1 normalize max = double(node.podCount)', SIZES, [0, 0, 0]),
    "all the same, between both": ('score "s" weight 1 normalize minmax = double(node.podCount)', SIZES, [0, 0, 0]),
    "all the same, turned round": (
        'score "s" weight 1 normalize minmax reverse = double(node.podCount)', SIZES, [100, 100, 100],
    ),
    "nodes that were refused do not count": (
        'filter "f" { require node.name != "c" } score "s" weight 1 normalize max = node.allocatable.cpu / 1m',
        SIZES, [50, 100],
    ),
    "clamped": (
        'score "s" weight 1 = clamp(node.allocatable.cpu / 1m, 0.0, 100.0)', [node("a", "29999m")], [100],
    ),
    "truncated": ('score "s" weight 1 = 100 * ratio(node.allocatable.cpu, 100)', [node("a", "28999m")], [28]),
    "truncated after a hair is added, 0.29 * 100 being 28.999999999999996": (
        'score "s" weight 1 = 100 * ratio(node.allocatable.cpu, 100)', [node("a", "29")], [29],
    ),
    "an empty optional is nothing and stays out of the extremes": (
        'score "s" weight 1 normalize minmax reverse = toInt(node.labels[?"cost"])', COSTS, [100, 0, 0],
    ),
    "one that fails is the least": (QUOTIENT, COUNTS, [0, 50, 0]),
    "one that fails is what on error says": (QUOTIENT + " on error 3.0", COUNTS, [0, 50, 75]),
    "without a value it is what on error says": (
        'score "s" weight 1 = clamp(10 / node.podCount, 0, 100) on error 7', [node("a")], [7],
    ),
    "what an empty optional would hold is no error": (
        'score "s" weight 1 normalize max = node.labels[?"x"].optMap(v, 1.0 / pods.map(p, 0.0).sum()) on error 5.0',
        [node("a"), node("b").label("x", "")], [0, 100],
    ),
    "a weight may be a param": ('param w: int = 3 range [1, 10] score "s" weight w = 7', [node("a")], [21]),
}  # fmt: skip


@pytest.mark.parametrize(("members", "nodes", "expected"), SCORES.values(), ids=SCORES)
def test_a_score_is_normalised_clamped_and_weighed(members: str, nodes: list[Any], expected: list[int]) -> None:
    assert scores(members, *nodes) == expected


EXTREMES = (0.0, -0.0, 1.0, 99.5, -3.0, 1e-9, 5e-324, 1e300, 5e307, 1e308, -1e308, 1.7976931348623157e308)
DOUBLES = st.one_of(st.sampled_from((*EXTREMES, np.inf, -np.inf, np.nan)), st.floats(), st.floats(-10.0, 120.0))


def quotient(name: str, value: float) -> Any:
    """A node with two annotations whose quotient is the value: NaN and the infinities have no text."""
    above, below = (str(value), "1.0") if np.isfinite(value) else (str(float(np.sign(np.nan_to_num(value)))), "0.0")
    return node(name).annotation("above", above).annotation("below", below)


def exact_score(value: float, counted: list[Fraction], normalize: str) -> Fraction:
    """A score before it is rounded, by fractions; whether values differ at all is asked of their doubles."""
    if not np.isfinite(value):
        return Fraction(0)
    score, least, greatest = Fraction(value), min(counted), max(counted)
    if "minmax" in normalize:
        score = 100 * (score - least) / (greatest - least) if float(greatest) - float(least) >= 1e-9 else Fraction(0)
    elif normalize:
        score = 100 * score / greatest if greatest > 0 else Fraction(0)
    return max(Fraction(0), min(100 - score if "reverse" in normalize else score, Fraction(100)))


@pytest.mark.parametrize(
    "normalize", ["", "normalize max", "normalize max reverse", "normalize minmax", "normalize minmax reverse"]
)
@settings(max_examples=30)
@given(values=st.lists(DOUBLES, min_size=1, max_size=6), weight=st.sampled_from((1, 7, 1_000_000)))
@example(values=[-1e308, 1e308, 0.0], weight=1)
@example(values=[5e307, 1e308, np.nan, np.inf], weight=1_000_000)
@example(values=[-1e308, 5e-324, -np.inf], weight=1)
@example(values=[1e-9, 7e-229], weight=1)
def test_scores_stay_within_0_and_100_whatever_doubles_do(normalize: str, values: list[float], weight: int) -> None:
    value = 'toDouble(node.annotations[?"above"]).orValue(7.0) / toDouble(node.annotations[?"below"]).orValue(7.0)'
    if not normalize:
        value, values = f"clamp({value}, -5.0, 100.0)", [float(np.clip(value, -5.0, 100.0)) for value in values]
    nodes = [quotient(f"n{place}", value) for place, value in enumerate(values)]
    totals = scores(f'score "s" weight {weight} {normalize} = {value}', *nodes)
    counted = [Fraction(value) for value in values if np.isfinite(value)]
    for value, total in zip(values, totals, strict=True):
        score, rest = divmod(int(total), weight)
        assert rest == 0
        assert 0 <= score <= 100
        assert -1 < exact_score(value, counted, normalize) - score < 1
        assert np.isfinite(value) or score == 0


def test_random_scores_are_the_same_in_every_replay() -> None:
    member = 'score "s" weight 1 = 100 * random()'
    nodes = [node(name) for name in "abcdef"]
    assert scores(member, *nodes) == scores(member, *nodes)
    assert len(set(scores(member, *nodes))) > 1
