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
from policyengine.compiler.rules.filter import RuleFilter
from policyengine.compiler.rules.score import RuleScore
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import QueueingHint
from policyengine.framework.plugin import Reads, SituationReader
from policyengine.framework.profile import Profile
from policyengine.framework.status import Code
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


def test_the_first_failing_require_in_the_order_written_is_reported() -> None:
    profile = policy('filter "f" { require node.podCount < 0 else "first" require node.free.cpu > 100 else "second" }')
    assert refusal(profile, make_pod(), cluster(node("a"))) == ("f", "Unschedulable", ("first",))


def test_a_text_is_filled_in_for_each_node() -> None:
    profile = policy(
        'param least: memory = 9Gi filter "f" { require node.free.memory >= least'
        ' else "needs {least}, has {node.free.memory} of {{x}}" }'
    )
    snapshot = cluster(node("a"), node("b", memory="4Gi"))
    assert refusal(profile, make_pod(), snapshot, 0)[2] == ("needs 9Gi, has 8Gi of {x}",)
    assert refusal(profile, make_pod(), snapshot, 1)[2] == ("needs 9Gi, has 4Gi of {x}",)
    assert Evaluator(profile).filter(make_pod().info(), snapshot).counts() == [("needs 9Gi, has 8Gi of {x} (a)", 2)]


def test_without_a_text_the_condition_is_shown_as_written() -> None:
    profile = policy('filter "roomy" { require node.free.cpu  >=\n 100 }')
    assert refusal(profile, make_pod(), cluster(node("a")))[2] == ("roomy: `node.free.cpu >= 100` is false",)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("node.free.cpu > 100", "Unschedulable"),
        ("node.podCount > 100", "Unschedulable"),
        ("node.allocatable.cpu > 100", "UnschedulableAndUnresolvable"),
        ("pod.priority > 100", "UnschedulableAndUnresolvable"),
    ],
)
def test_what_an_eviction_could_change_decides_the_code(condition: str, code: str) -> None:
    assert refusal(policy(f'filter "f" {{ require {condition} }}'), make_pod(), cluster(node("a")))[1] == code


def test_an_eviction_is_seen_through_lets() -> None:
    profile = policy('let room = node.free.cpu filter "f" { require room > 100 }')
    assert refusal(profile, make_pod(), cluster(node("a")))[1] == "Unschedulable"


def test_a_text_that_reads_the_node_says_nothing_about_the_pod_as_a_whole() -> None:
    profile = policy('filter "f" { require pod.priority > 5 else "not on {node.name}" }')
    diagnosis = Evaluator(profile).filter(make_pod().info(), cluster(node("a")))
    assert diagnosis.pre_filter is not None
    assert diagnosis.pre_filter.reasons == ("f: `pod.priority > 5` is false",)


def test_optionals_are_equal_where_both_are_empty_or_hold_the_same() -> None:
    profile = policy('filter "f" { require pod.labels[?"a"] == node.labels[?"b"] }')
    snapshot = cluster(node("x").label("b", "1"), node("y").label("b", "2"), node("z"))
    for pod, fits in ((make_pod().label("a", "1"), [0]), (make_pod().label("a", "3"), []), (make_pod(), [2])):
        assert list(Evaluator(profile).filter(pod.info(), snapshot).feasible) == fits


def test_a_require_without_a_node_refuses_the_pod_once() -> None:
    profile = policy('filter "f" { require node.ready require pod.priority > 5 else "priority {pod.priority} is low" }')
    diagnosis = Evaluator(profile).filter(make_pod().priority(3).info(), cluster(node("a")))
    assert diagnosis.pre_filter is not None
    assert diagnosis.pre_filter.reasons == ("priority 3 is low",)
    assert diagnosis.pre_filter.plugin == "f"


def test_an_error_refuses_the_node_and_says_why() -> None:
    profile = policy('filter "f" { require 10 / (node.podCount - 0) > 1 else "no" }')
    text = "f: `10 / (node.podCount - 0) > 1` has no value: division by zero"
    assert refusal(profile, make_pod(), cluster(node("a"))) == ("f", "Unschedulable", (text,))


@pytest.mark.parametrize(("chosen", "feasible"), [("true", 1), ("false", 0), ("node.podCount == 0", 1)])
def test_on_error_chooses_otherwise(chosen: str, feasible: int) -> None:
    profile = policy(f'filter "f" {{ require 10 / node.podCount > 1 on error {chosen} }}')
    assert len(Evaluator(profile).filter(make_pod().info(), cluster(node("a"))).feasible) == feasible


def test_on_error_serves_a_require_without_a_node_too() -> None:
    profile = policy('filter "f" { require 10 / pod.priority > 1 on error true }')
    assert len(Evaluator(profile).filter(make_pod().priority(0).info(), cluster(node("a"))).feasible) == 1


def test_an_error_in_when_counts_as_true_for_a_filter_and_false_for_a_score() -> None:
    profile = policy(
        'filter "f" when 1 / pod.priority > 0 { require node.podCount > 0 }'
        ' score "s" weight 1 when 1 / pod.priority > 0 = 100'
    )
    snapshot = cluster(node("a"))
    pod = make_pod().priority(0).info()
    assert len(Evaluator(profile).filter(pod, snapshot).feasible) == 0
    assert profile.scores[0][0].pre_score(pod, snapshot)[0].is_skip


def test_a_rule_whose_when_is_false_does_not_run() -> None:
    profile = policy('filter "f" when pod.priority > 0 { require false }')
    assert len(Evaluator(profile).filter(make_pod().info(), cluster(node("a"))).feasible) == 1
    assert Evaluator(profile).filter(make_pod().priority(1).info(), cluster(node("a"))).pre_filter is not None


# --- signatures, reads and events --------------------------------------------------------------------------


def signatures(profile: Profile, *pods: PodBuilder) -> list[Any]:
    return [profile.filters[0].signature(pod.info()) for pod in pods]


def test_pods_that_differ_in_what_no_rule_reads_share_a_signature() -> None:
    profile = policy(
        'let team = pod.labels[?"team"].orValue("") filter "f" { require node.labels[?"team"].orValue("") == team }'
    )
    a, b, c = signatures(
        profile, make_pod("a").label("team", "x").label("app", "1"), make_pod("b").label("team", "x"), make_pod("c")
    )
    assert a == b
    assert a != c


def test_what_only_a_text_reads_is_part_of_the_signature() -> None:
    profile = policy('filter "f" { require node.ready else "no place for {pod.name}" }')
    a, b = signatures(profile, make_pod("a"), make_pod("b"))
    assert a != b


def test_all_pods_a_rule_does_not_apply_to_share_a_signature() -> None:
    profile = policy('filter "f" when pod.priority > 0 { require node.name == pod.name }')
    a, b = signatures(profile, make_pod("a"), make_pod("b"))
    assert a == b


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


@pytest.mark.parametrize(
    ("normalize", "expected"),
    [
        ("normalize max", [25, 50, 100]),
        ("normalize max reverse", [75, 50, 0]),
        ("normalize minmax", [0, 33, 100]),
        ("normalize minmax reverse", [100, 66, 0]),
    ],
)
def test_scores_are_normalised_over_the_nodes_that_passed(normalize: str, expected: list[int]) -> None:
    member = f'score "s" weight 1 {normalize} = node.allocatable.cpu / 1m'
    assert scores(member, node("a", "1"), node("b", "2"), node("c", "4")) == expected


@pytest.mark.parametrize(("normalize", "expected"), [("max", 0), ("minmax", 0), ("minmax reverse", 100)])
def test_scores_that_are_all_the_same_are_not_told_apart(normalize: str, expected: int) -> None:
    member = f'score "s" weight 1 normalize {normalize} = double(node.podCount)'
    assert scores(member, node("a"), node("b")) == [expected, expected]


def test_scores_are_clamped_and_truncated_after_a_hair_is_added() -> None:
    assert scores('score "s" weight 1 = clamp(node.allocatable.cpu / 1m, 0.0, 100.0)', node("a", "29999m")) == [100]
    assert scores('score "s" weight 1 = 100 * ratio(node.allocatable.cpu, 100)', node("a", "28999m")) == [28]
    # 0.29 * 100 is 28.999999999999996 in doubles.
    assert scores('score "s" weight 1 = 100 * ratio(node.allocatable.cpu, 100)', node("a", "29")) == [29]


def test_an_empty_optional_scores_nothing_and_stays_out_of_the_extremes() -> None:
    member = 'score "s" weight 1 normalize minmax reverse = toInt(node.labels[?"cost"])'
    nodes = [node("a").label("cost", "10"), node("b").label("cost", "20"), node("c")]
    assert scores(member, *nodes) == [100, 0, 0]


def test_a_score_that_fails_is_the_least_unless_on_error_says_otherwise() -> None:
    member = 'score "s" weight 1 normalize max reverse = 12.0 / double(toInt(node.labels[?"n"]).orValue(0))'
    nodes = [node("a").label("n", "1"), node("b").label("n", "2"), node("c")]
    assert scores(member, *nodes) == [0, 50, 0]
    assert scores(member + " on error 3.0", *nodes) == [0, 50, 75]


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
@settings(max_examples=60, deadline=None)
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


def test_nodes_that_were_refused_do_not_count_in_normalising() -> None:
    member = 'filter "f" { require node.name != "c" } score "s" weight 1 normalize max = node.allocatable.cpu / 1m'
    assert scores(member, node("a", "1"), node("b", "2"), node("c", "4")) == [50, 100]


def test_what_an_empty_optional_would_hold_is_no_error() -> None:
    body = "1.0 / pods.map(p, 0.0).sum()"
    member = f'score "s" weight 1 normalize max = node.labels[?"x"].optMap(v, {body}) on error 5.0'
    assert scores(member, node("a"), node("b").label("x", "")) == [0, 100]


def test_refusals_and_raw_scores_do_not_depend_on_how_many_rows_are_asked() -> None:
    profile = policy(
        'filter "f" { require node.free.memory > 4Gi }'
        ' score "s" weight 1 normalize max = ln(node.allocatable.memory / 1Gi + 0.5)'
    )
    rule, score = profile.filters[0], profile.scores[0][0]
    assert isinstance(rule, RuleFilter)
    assert isinstance(score, RuleScore)
    pod, snapshot = make_pod().info(), cluster(*(node(f"n{i}", memory=f"{i + 1}Gi") for i in range(9)))
    (_, filtering), (_, scoring) = rule.pre_filter(pod, snapshot), score.pre_score(pod, snapshot)
    assert filtering is not None
    assert scoring is not None
    refused, raw = rule.filter(filtering, snapshot, np.arange(9)), score.score(scoring, snapshot, np.arange(9))
    assert list(refused.refused) == [1] * 4 + [0] * 5
    assert refused.refusals[0].code is Code.UNSCHEDULABLE
    for row in range(9):
        only = np.array([row])
        assert rule.filter(filtering, snapshot, only).refused[0] == refused.refused[row]
        assert score.score(scoring, snapshot, only)[0] == raw[row]


def test_a_weight_may_be_a_param() -> None:
    assert scores('param w: int = 3 range [1, 10] score "s" weight w = 7', node("a")) == [21]


def test_random_scores_are_the_same_in_every_replay() -> None:
    member = 'score "s" weight 1 = 100 * random()'
    nodes = [node(name) for name in "abcdef"]
    assert scores(member, *nodes) == scores(member, *nodes)
    assert len(set(scores(member, *nodes))) > 1
