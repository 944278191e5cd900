"""Queue rules: the order of pods, and the key, minimum and timeout of a gang; what counts where they have no value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import GangRule
from policyengine.policy_compiler import compile_policy
from tests.builders import PodBuilder, make_pod


def key_of(order: str) -> Any:
    return compile_policy(f'policy "t" {{ queue {{ order by {order} }} }}').queue_key


def order(keys: str, *pods: PodBuilder) -> list[str]:
    key = key_of(keys)
    infos = [pod.info() for pod in pods]
    return [info.name for info in sorted(infos, key=lambda info: key(info, 0.0))]


def rank(name: str, value: str | None) -> PodBuilder:
    pod = make_pod(name)
    return pod if value is None else pod.label("rank", value)


NUMBERS = [rank("two", "2"), rank("none", None), rank("ten", "10"), rank("word", "x"), rank("minus", "-1")]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ('toInt(pod.labels[?"rank"])', ["minus", "two", "ten", "none", "word"]),
        ('toInt(pod.labels[?"rank"]) desc', ["ten", "two", "minus", "none", "word"]),
        ('toInt(pod.labels[?"rank"]) desc missing first', ["none", "word", "ten", "two", "minus"]),
        ('toDouble(pod.labels[?"rank"]) desc', ["ten", "two", "minus", "none", "word"]),
        ('pod.labels[?"rank"]', ["minus", "ten", "two", "word", "none"]),
        ('pod.labels[?"rank"] desc', ["word", "two", "ten", "minus", "none"]),
        ('pod.labels[?"rank"].hasValue() desc', ["two", "ten", "word", "minus", "none"]),
        ('100 / toInt(pod.labels[?"rank"]).orValue(0)', ["minus", "ten", "two", "none", "word"]),
        ('1.0 / double(toInt(pod.labels[?"rank"]).orValue(0))', ["minus", "ten", "two", "none", "word"]),
    ],
)
def test_keys_sort_by_value_and_what_is_missing_last_or_first(keys: str, expected: list[str]) -> None:
    assert order(keys, *NUMBERS) == expected


def test_quality_of_service_has_an_order() -> None:
    pods = [
        make_pod("best-effort"),
        make_pod("guaranteed").req(cpu="1", memory="1Gi").limit(cpu="1", memory="1Gi"),
        make_pod("burstable").req(cpu="1"),
    ]
    assert order("pod.qos desc", *pods) == ["guaranteed", "burstable", "best-effort"]


@pytest.mark.parametrize("key", ["pod.requests.cpu desc", "pod.createdAt", "now - pod.createdAt < 5min"])
def test_quantities_and_times_are_keys_and_the_cluster_is_none(key: str) -> None:
    pods = [
        make_pod("a").req(cpu="1").created("2026-01-02T00:00:00Z"),
        make_pod("b").req(cpu="2").created("2026-01-01T00:00:00Z"),
    ]
    if "now" in key:
        with pytest.raises(ValueError, match="queue key"):
            order(key, *pods)
    else:
        assert order(key, *pods) == ["b", "a"]


def test_equal_keys_go_by_time() -> None:
    key = key_of("pod.priority desc")
    a, b = make_pod("a").info(), make_pod("b").info()
    assert key(b, 1.0) < key(a, 2.0)
    assert key(a, 1.0) == key(b, 1.0)


def test_without_an_order_the_priority_decides() -> None:
    key = compile_policy('policy "t" { }').queue_key
    assert key(make_pod("low").priority(1).info(), 0.0) > key(make_pod("high").priority(2).info(), 9.0)


ranks = st.one_of(st.none(), st.sampled_from(["-1", "0", "7", "x", ""]))


@settings(max_examples=60)
@given(values=st.lists(ranks, min_size=2, max_size=8))
def test_every_two_keys_can_be_compared(values: list[str | None]) -> None:
    key = key_of('toInt(pod.labels[?"rank"]) desc, pod.labels[?"rank"] desc missing first, pod.qos')
    keys = [key(rank(f"p{i}", value).info(), 0.0) for i, value in enumerate(values)]
    for a in keys:
        for b in keys:
            assert (a < b) + (b < a) + (a == b) == 1


RULE = """policy "t" {
  let group = pod.labels[?"podGroup"].orValue("")
  gang "pod-group" when group != "" {
    key: pod.namespace + "/" + group
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 1min
  }
}"""


def gang(text: str = RULE) -> GangRule:
    return compile_policy(text).gangs[0]


def member(minimum: str | None = None) -> object:
    pod = make_pod("p", "ns").label("podGroup", "g")
    return (pod if minimum is None else pod.label("minAvailable", minimum)).info()


@pytest.mark.parametrize(
    ("label", "minimum"),
    [("3", 3), ("1", 1), ("0", 1), ("-5", 1), ("three", 1), ("2.5", 1), ("", 1), (None, 1), ("99999999999", 2**31 - 1)],
)
def test_a_minimum_below_one_or_no_number_counts_as_one(label: str | None, minimum: int) -> None:
    assert gang().minimum(member(label)) == minimum
