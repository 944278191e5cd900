"""The figures of a run: spread, gangs, quotas, and what tenants use."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from policyengine.plan.comparison import compared
from policyengine.plan.measures import fair_shares, measures
from policyengine.plan.membership import Memberships, Watching
from policyengine.plan.rerun import Rerun, finished
from policyengine.policy_compiler import compile_policy
from policyengine.trials.simulation import Simulation

SPREAD = """policy "spread" { scheduler "s" base filters
  score "least" weight 9 = 100 * (1.0 - ratio(node.used.cpu, node.allocatable.cpu))
}"""
PACKED = """policy "packed" { scheduler "s" base filters
  score "most" weight 9 = 100 * ratio(node.used.cpu, node.allocatable.cpu)
}"""


def runs(old: str, new: str, **scenario: Any) -> tuple[Rerun, Rerun]:
    before, after = [compile_policy(old)], [compile_policy(new)]
    memberships = Memberships(before, after)
    found = []
    for profiles in (before, after):
        watching = Watching(memberships)
        run = Simulation({"duration": "100s", **scenario}, profiles, watch=watching)
        watching.play = run.play
        run.run()
        found.append(finished(run.play, watching))
    return found[0], found[1]


def test_spread_is_on_how_many_nodes_and_zones_the_pods_of_a_controller_stand_of_as_many_as_they_could() -> None:
    old, new = runs(
        SPREAD,
        PACKED,
        nodes=[{"name": "n", "count": 4, "zones": ["a", "b"], "allocatable": {"cpu": 4}}],
        pods=[{"name": "web", "count": 4, "requests": {"cpu": 1}, "recreate": True}, {"name": "alone"}],
    )
    assert measures(old)["spread"] == {"node": 1.0, "zone": 1.0}
    assert measures(new)["spread"] == {"node": 0.25, "zone": 0.5}


def test_gangs_are_counted_by_the_new_policy_s_rule_under_both() -> None:
    """Three of four fit: without the rule they stand there in part, with it nobody does."""
    rule = PACKED[:-1] + 'gang "crew" { key: pod.labels[?"crew"].orValue("") min: 4 timeout: 1min } }'
    old, new = runs(
        PACKED,
        rule,
        nodes=[{"name": "n", "allocatable": {"cpu": 3}}],
        pods=[{"name": "p", "count": 4, "labels": {"crew": "a"}, "requests": {"cpu": 1}}],
    )
    assert measures(old)["gangs"] == {"whole": 0, "partial": 1}
    assert measures(new)["gangs"] == {"whole": 0, "partial": 0}


def test_a_gang_that_came_together_is_whole_and_never_partial() -> None:
    rule = PACKED[:-1] + 'gang "crew" { key: pod.labels[?"crew"].orValue("") min: 2 timeout: 1min } }'
    pods = [{"name": "p", "count": 2, "labels": {"crew": "a"}, "requests": {"cpu": 1}}]
    found = runs(PACKED, rule, nodes=[{"name": "n", "allocatable": {"cpu": 3}}], pods=pods)
    assert [measures(run)["gangs"] for run in found] == [{"whole": 1, "partial": 0}] * 2


def test_quotas_are_shares_of_the_guarantee_else_of_the_limit_in_the_mean_over_time() -> None:
    """Four pods of one cpu, each for half of the time; the new policy lets two of them run at once."""
    limited = PACKED[:-1] + 'quota "blue" when pod.namespace == "blue" { limit: {cpu: 2, memory: 8Gi} } }'
    pods = [{"name": "p", "namespace": "blue", "count": 4, "runs": "50s", "requests": {"cpu": 1, "memory": "1Gi"}}]
    old, new = runs(PACKED, limited, nodes=[{"name": "n", "allocatable": {"cpu": 8}}], pods=pods)
    assert measures(old)["quotas"] == {"blue": {"cpu": 1.0, "memory": 0.25}}
    assert measures(new)["quotas"] == {"blue": {"cpu": 1.0, "memory": 0.25}}
    assert measures(new)["wait"]["max"] == 50.0


def test_tenants_are_those_of_the_policy_with_their_waits_and_their_share_of_the_cluster() -> None:
    fair = PACKED[:-1] + 'queue { fair by pod.labels[?"team"].orValue("") } }'
    old, new = runs(
        PACKED,
        fair,
        nodes=[{"name": "n", "allocatable": {"cpu": 4, "memory": "64Gi"}}],
        pods=[
            {"name": "a", "labels": {"team": "a"}, "count": 2, "requests": {"cpu": 1}},
            {"name": "b", "labels": {"team": "b"}, "runs": "50s", "requests": {"cpu": 2}},
        ],
    )
    found = compared(old, new)
    assert {tenant: side["share"] for tenant, (_, side) in found.by_tenant.items()} == {"a": 0.5, "b": 0.25}
    assert found.by_namespace["default"][1]["share"] == 0.75
    assert found.json["byTenant"]["a"]["new"]["p99"] == 0.0


def test_a_pod_that_is_bound_and_preempted_at_one_moment_counts_for_its_tenant() -> None:
    fair = PACKED[:-1] + 'queue { order by pod.name fair by pod.labels[?"team"].orValue("") } }'
    pods = [
        {"name": "a", "labels": {"team": "a"}, "requests": {"cpu": 1}},
        {"name": "b", "labels": {"team": "b"}, "requests": {"cpu": 1}, "priority": 9},
    ]
    [run, _] = runs(fair, fair, nodes=[{"name": "n", "allocatable": {"cpu": 1}}], pods=pods)
    assert [pod.how for pod in run.ledger.pods.values()] == ["preempted", ""]
    assert [run.member(uid).tenant for uid in run.ledger.pods] == ["a", "b"]


def test_what_there_is_goes_to_who_asks_for_least_and_the_rest_by_weight() -> None:
    one = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert fair_shares({"a": 0.1, "b": 0.6, "c": 0.6}, one, 0.8) == approx({"a": 0.1, "b": 0.35, "c": 0.35})
    assert fair_shares({"a": 0.6, "b": 0.6}, {"a": 3.0, "b": 1.0}, 0.8) == approx({"a": 0.6, "b": 0.2})
    assert fair_shares({"a": 0.6, "b": 0.6}, {"a": 3.0, "b": 1.0}, 0.4) == approx({"a": 0.3, "b": 0.1})
    assert fair_shares({}, {}, 0.0) == {}


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(1e-6, 1e6)), min_size=1, max_size=8),
    st.floats(0, 1),
)
def test_nobody_gets_more_than_it_asks_for_nor_less_than_another_by_weight(
    tenants: list[tuple[float, float]], part: float
) -> None:
    asked = {str(n): one for n, (one, _) in enumerate(tenants)}
    weights = {str(n): one for n, (_, one) in enumerate(tenants)}
    total = part * sum(asked.values())
    found = fair_shares(asked, weights, total)
    assert sum(found.values()) == approx(total, abs=1e-9)
    for name, share in found.items():
        assert -1e-9 <= share <= asked[name] + 1e-9
        if share < asked[name] - 1e-6:
            assert all(
                other / weights[one] <= share / weights[name] * (1 + 1e-6) + 1e-6 for one, other in found.items()
            )


def test_the_error_of_shares_is_what_tenants_have_beyond_what_is_fair() -> None:
    """Both wait for a node. Team a, which came first, takes all four cpus; half of them should be b's, or a quarter
    where a weighs three times as much."""
    pods = [
        {"name": "a", "labels": {"team": "a"}, "count": 4, "requests": {"cpu": 1}},
        {"name": "b", "labels": {"team": "b"}, "count": 4, "requests": {"cpu": 1}},
    ]
    nodes = [{"name": "n", "at": "50s", "allocatable": {"cpu": 4}}]
    by_team = 'fair by pod.labels[?"team"].orValue("")'
    for weights, error in (("", 0.5), (' weight {"a": 3.0}', 0.25)):
        old, new = runs(PACKED, PACKED[:-1] + f"queue {{ {by_team}{weights} }} }}", nodes=nodes, pods=pods)
        assert measures(old)["share"] == {"error": error}
        assert measures(new)["share"] == {"error": 0.0}
    assert measures(runs(PACKED, PACKED, nodes=nodes, pods=pods)[0])["share"] == {"error": 0.0}


def test_a_rule_that_fails_for_a_pod_counts_it_nowhere() -> None:
    failing = PACKED[:-1] + 'gang "crew" { key: string(1 / pod.priority) min: 2 timeout: 1min } }'
    found = runs(PACKED, failing, nodes=[{"name": "n"}], pods=[{"name": "p", "count": 2}])
    assert [measures(run)["gangs"] for run in found] == [{"whole": 0, "partial": 0}] * 2


def test_a_run_without_anything_has_figures() -> None:
    found = runs(PACKED, SPREAD, nodes=[{"name": "n", "count": 1}], pods=[{"name": "p", "at": "99s"}])
    assert measures(found[0])["spread"] == {"node": 1.0, "zone": 1.0}
