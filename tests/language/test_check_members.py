"""What the checker makes of quotas, permits, preemption, texts and fair shares."""

from __future__ import annotations

import pytest

from policyengine.language import ir
from policyengine.language.checking.setting_checks import POINTS, wrong_key
from policyengine.language.ir.ir_walk import fields, known_amounts
from policyengine.language.types import Shape
from tests.language.checking import findings, policy


def test_a_quota_has_amounts_in_grains_in_the_order_written() -> None:
    found = policy("""
        quota "team" when pod.namespace == "team" {
          guarantee: {memory: 8Gi, cpu: 4}
          limit: {cpu: 8500m, memory: 16Gi, storage: 1Gi, "nvidia.com/gpu": 3, "hugepages-2Mi": 4Mi}
          borrow: pod.priority > 0
        }
    """).quotas[0]
    assert known_amounts(found.guarantee) == {"memory": 8 << 30, "cpu": 4000}
    assert found.limit is not None
    assert known_amounts(found.limit) == {
        "cpu": 8500,
        "memory": 16 << 30,
        "storage": 1 << 30,
        "nvidia.com/gpu": 3,
        "hugepages-2Mi": 4 << 20,
    }
    assert found.borrow is not None and found.borrow.shape is Shape.SCALAR


def test_a_quota_without_a_limit_has_none() -> None:
    assert policy('quota "q" when true { guarantee: {cpu: 1} }').quotas[0].limit is None


def test_a_quota_s_finding_names_the_field_that_running_pods_do_not_have() -> None:
    found = findings('let asked = pod.queuedAt\nquota "q" when asked > now { limit: {cpu: 1} }')
    assert [finding.message for finding in found] == [
        "a quota's `when` reads only what running pods have, and `now` is none of them"
    ]


def test_a_permit_may_read_the_node_that_was_chosen() -> None:
    found = policy('permit "warm" when node.labels[?"cold"].hasValue() { until: node.ready timeout: 10min }').permits[0]
    assert found.until is not None and found.until.shape is Shape.NODE
    assert isinstance(found.timeout, ir.Const) and found.timeout.value == 600 * 10**9


def test_preemption_is_about_victims() -> None:
    found = policy("""
        param most: int = 2 range [1, 5]
        preempt when pod.priority > 0 {
          victims: victim.priority < pod.priority && victim.labels[?"keep"].orValue("") != "yes"
          order by victim.priority, victim.startedAt desc missing first
          maxVictims: most
        }
    """).preempt
    assert found is not None and found.victims is not None
    assert {read.path[0] for read in fields(found.victims)} == {"victim", "pod"}
    assert [(key.descending, key.missing_first) for key in found.order] == [(False, False), (True, True)]
    assert isinstance(found.max_victims, ir.ParamRef)


@pytest.mark.parametrize("point", POINTS)
def test_a_line_may_be_logged_at_every_point(point: str) -> None:
    assert policy(f'on {point} when pod.priority > 1 log "{{pod.name}} at {point}"').logs[0].point == point


def test_an_unknown_point_names_those_there_are() -> None:
    (found,) = findings('on prefilter log "x"')
    assert all(f"`{point}`" in found.message for point in POINTS)
    assert found.fix is not None and found.fix.edits[0].text == "preFilter"


def test_annotations_are_written_with_the_binding() -> None:
    found = policy("""bind { annotations: {"example.com/node": "on {node.name}", short: "x"} }""").annotations
    assert [one.key for one in found] == ["example.com/node", "short"]


@pytest.mark.parametrize("key", ["a", "A.b_c-d", "example.com/a", "a.b-c.d/x", "x" * 63, f"{'a' * 253}/b"])
def test_a_qualified_name_is_a_key(key: str) -> None:
    assert wrong_key(key) is None


@pytest.mark.parametrize("key", ["", "/a", "a/", "a/b/c", "-a", "a-", "a b", "é", "x" * 64, f"{'a' * 254}/b", "a_b/c"])
def test_anything_else_is_no_key(key: str) -> None:
    assert wrong_key(key) is not None


@pytest.mark.parametrize("name", ["a b", "..", ".", "ü", "<b>", "x" * 64, "A/b", " "])
def test_a_scheduler_whose_events_no_api_server_takes_is_told(name: str) -> None:
    [found] = findings(f'scheduler "{name}"')
    assert found.code == "PE2012"
    assert "is no scheduler name: " in found.message


def test_a_scheduler_has_any_name_that_events_take() -> None:
    assert [policy(f'scheduler "{name}"').scheduler for name in ("a", "A_b.c-1", "example.com/a")]


def test_tenants_are_weighed() -> None:
    queue = policy('queue { fair by pod.labels[?"team"].orValue("") weight {"a": 2, "b": 0.5} }').queue
    assert queue.fair_by is not None
    assert queue.fair_weights == (("a", 2.0), ("b", 0.5))


def test_a_gang_may_say_who_counts() -> None:
    plain = policy('gang "g" { key: pod.namespace min: 2 timeout: 60s }').gangs[0]
    assert not plain.counts_finished and not plain.any_scheduler
    wide = policy('gang "g" { key: pod.namespace min: 2 timeout: 60s counts: finished anyScheduler: true }').gangs[0]
    assert wide.counts_finished and wide.any_scheduler
    for wrong in ("counts: all", "counts: true", "anyScheduler: false", "anyScheduler: finished"):
        [found] = findings(f'gang "g" {{ key: pod.namespace min: 2 timeout: 60s {wrong} }}')
        assert "takes one word: write" in found.message


def test_a_gang_may_say_how_long_it_waits() -> None:
    waits = policy('gang "g" { key: pod.namespace min: 2 timeout: 60s waits: 10min }').gangs[0].waits
    assert isinstance(waits, ir.Const) and waits.value == 600 * 10**9


def test_a_broken_member_hides_no_other() -> None:
    found = findings("""
        function f(a: int): int = a + nothing
        quota "q" when f(1) > 0 { limit: {cpus: 1} }
        permit "w" { delay: f(2) * 1s until: true }
        preempt { victims: f(3) > 0 maxVictims: 0 }
        on somewhere log "{f(4)}"
        bind { annotations: {"a b": "{f(5)}"} }
        let b = f(6) + f(7, 8)
    """)
    assert [finding.code for finding in found] == [
        "PE1001",
        "PE2012",
        "PE2008",
        "PE2016",
        "PE2012",
        "PE2012",
        "PE1004",
    ]
