"""Scenarios: what is refused, with its place, and what times and draws mean."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from policyengine.trials.scenario import ScenarioError, read, seconds
from policyengine.trials.simulation import Simulation, Written, schema
from policyengine.trials.templates import moments

NODES = "nodes: [{name: n}]\n"
PODS = "pods: [{name: p}]\n"


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is not one YAML document with keys and values"),
        ("[1, 2]", "it is not one YAML document with keys and values"),
        ("nodes: [", "it is not YAML on line 1: expected the node content, but found '<stream end>'"),
        (NODES + "pods: &p [{name: p}]", "it uses a YAML alias or anchor on line 2; write the value out"),
        (NODES + "pods: !!set {p}", "it uses the YAML tag `tag:yaml.org,2002:set` on line 2; leave it out"),
        (NODES + NODES + PODS, "line 2, column 1: the key `nodes` is there twice"),
        (NODES, "line 1, column 1: `the document`: `pods` is a required property"),
        (NODES + "pods: [{name: P}]", "line 2, column 15: `pods.0.name`: `P` does not match"),
        (NODES + "pods: [{name: p, cpu: 1}]", "line 2, column 23: `pods.0.cpu` is unknown; there are name, count"),
        (NODES + "pods: [{name: p, at: 5m}]", "line 2, column 22: `5m` is no duration; write 90s, 5min, 2h30min or 1d"),
        (NODES + "pods: [{name: p, at: -1}]", "line 2, column 22: `pods.0.at`: -1 is less than the minimum of 0"),
        (NODES + "pods: [{name: p, runs: {mean: 1s}}]", "`pods.0.runs`: wanted is a duration; or {exponential: MEAN}"),
        (NODES + "pods: [{name: p, every: 1s}]", "line 2, column 8: `p` comes for ever; give `count`, `until`"),
        (NODES + "pods: [{name: p, every: 1ms, until: 1h}]", "`p` comes about 3,600,000 times; the most is 1,000,000"),
        (NODES + "pods: [{name: p, every: .nan, until: 1h}]", "line 2, column 25: `nan` is no duration"),
        (NODES + PODS + "duration: 5m", "line 3, column 11: `5m` is no duration; write 90s, 5min, 2h30min or 1d"),
        (
            "nodes: [{name: n, allocatable: {cpu: -4}}]\n" + PODS,
            "`cpu`: `-4` is negative; write an amount of 0 or more",
        ),
        (NODES + "pods: [{name: p, requests: {cpu: [1, -1m]}}]", "line 2, column 38: `cpu`: `-1m` is negative"),
        (NODES + "pods: [{name: p, every: 0s, count: 2}]", "the time between two arrivals is more than 0"),
        (NODES + "pods: [{name: p, every: 1s, poisson: 1s}]", "`every` and `poisson` exclude each other"),
        (NODES + "pods: [{name: p, runs: {uniform: [5s, 1s]}}]", "`1s` is less than `5s`"),
        (NODES + "pods: [{name: p}, {name: p}]", "line 2, column 26: other pods are called `p` too"),
        (NODES + PODS + "start: yesterday", "line 3, column 8: `yesterdayT00:00:00Z` is not a time"),
        (NODES + PODS + "changes: [{at: 1s, drian: n}]", "line 3, column 11: `changes.0`: wanted is {at, cordon"),
        (NODES + PODS + "changes: [{at: 1s, drain: n, for: 1s}]", "`changes.0.for` is unknown; there are at, drain"),
        (NODES + PODS + "changes: [{at: 1s, fail: n, for: soon}]", "line 3, column 34: `soon` is no duration"),
        (NODES + PODS + "expect: [{pods: p, in: n}]", "line 3, column 10: `expect.0`: wanted is {pods, on|before"),
        (NODES + PODS + "expect: [{pods: p, boundBy: x}]", "line 3, column 29: `x` is no duration"),
    ],
)
def test_what_cannot_be_played_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as error:
        Written(text)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NODES + PODS + "policies: [{file: absent.policy}]", "line 3, column 12: `absent.policy`"),
        (NODES + PODS + "policies: [{text: 'policy {'}]", "line 3, column 12: the policy cannot be loaded\n"),
        (NODES + PODS + "policies: [{text: 'policy \"a\" {}'}, {text: 'policy \"b\" {}'}]", "`a` and `b` both serve"),
        (
            NODES + "pods: [{name: p, scheduler: defualt-scheduler}]",
            "serves scheduler `defualt-scheduler`; did you",
        ),
        (
            NODES + "pods: [{name: p, spec: {containers: 3}}]",
            "line 2, column 8: Pod `default/p`: field `spec",
        ),
        (NODES + "pods: [{name: p, spec: {nodeName: gone}}]", "line 2, column 8: no node is called `gone`"),
        (
            "nodes: [{name: n, allocatable: {cpu: much}}]\n" + PODS,
            "line 1, column 38: `cpu`: `much` is not",
        ),
        (
            NODES + PODS + "changes: [{at: 1s, drain: m}]",
            "line 3, column 27: no node that has come by then",
        ),
        (NODES + PODS + "changes: [{at: 1s, delete: q-*}]", "line 3, column 28: no pod that has come by then"),
        (NODES + PODS + "objects: [{kind: Pod, metadata: {name: q}}]", "`Pod` is no kind of object that a scenario"),
        (NODES + PODS + "expect: [{pods: p, use: {cpu: much}}]", "line 3, column 31: `cpu`: `much` is not a quantity"),
    ],
)
def test_what_shows_only_when_it_is_played_has_its_place_too(text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as error:
        Simulation(text).run()
    assert told in str(error.value)


def test_all_that_is_wrong_is_said_at_its_key_before_anything_is_played(tmp_path: Path) -> None:
    text = """nodes:
  - {name: n, allocatable: {cpu: 4, memory: 8GB, gpu: 3}}
pods:
  - {name: p, every: 1 s, count: 2, requests: {memory: [1Gi, 2 Gi]}}
  - {name: p, limits: {nvidia.com/gpu: x}}
changes:
  - {at: soon, drain: n}
expect:
  - {pods: p, use: {memory: much}}
duration: 5m
"""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ScenarioError) as error:
        Written(tmp_path / "a.yaml")
    assert str(error.value).replace(f"{tmp_path}/", "").split("\n") == [
        "`a.yaml`: line 2, column 45: `memory`: `8GB` is not a quantity; write `8G`",
        '`a.yaml`: line 2, column 55: no resource is called `gpu`; one of a vendor has its name: `"nvidia.com/gpu"`',
        "`a.yaml`: line 4, column 22: `1 s` is no duration; write 90s, 5min, 2h30min or 1d",
        "`a.yaml`: line 4, column 62: `memory`: `2 Gi` is not a quantity; write `2Gi`",
        "`a.yaml`: line 5, column 12: other pods are called `p` too",
        "`a.yaml`: line 5, column 40: `nvidia.com/gpu`: `x` is not a quantity; write a number such as 100m or 2Gi",
        "`a.yaml`: line 7, column 10: `soon` is no duration; write 90s, 5min, 2h30min or 1d",
        "`a.yaml`: line 9, column 29: `memory`: `much` is not a quantity; write a number such as 100m or 2Gi",
        "`a.yaml`: line 10, column 11: `5m` is no duration; write 90s, 5min, 2h30min or 1d",
    ]


def test_all_that_the_schema_refuses_is_said_at_once() -> None:
    with pytest.raises(ScenarioError) as error:
        Written("nodes: [{name: n, lables: {}}]\npods: [{name: p, priority: high}]\nsed: 1\n")
    assert str(error.value).split("\n") == [
        "line 1, column 27: `nodes.0.lables` is unknown; did you mean `labels`?",
        "line 2, column 28: `pods.0.priority`: wanted is an int, or a list of which each arrival draws one",
        "line 3, column 6: `sed` is unknown; did you mean `seed`?",
    ]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"cannot read `.*absent.yaml`: no such file"):
        Written(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe4")
    with pytest.raises(ScenarioError, match="is not UTF-8: byte 6"):
        Written(tmp_path / "latin.yaml")
    with pytest.raises(ScenarioError, match=r"for a file write `Path\('rush-hour.yaml'\)`"):
        Simulation("rush-hour.yaml")
    (tmp_path / "bad.yaml").write_text(NODES)
    with pytest.raises(ScenarioError, match=r"`.*bad.yaml`: line 1, column 1: "):
        Written(tmp_path / "bad.yaml")


def test_data_that_is_not_plain_is_refused() -> None:
    with pytest.raises(ScenarioError, match="a scenario is plain data"):
        Written({"nodes": [object()], "pods": []})


@pytest.mark.parametrize(
    ("written", "meant"), [("90s", 90), ("5min", 300), ("2h30min", 9000), ("1d", 86400), ("250ms", 0.25), (7, 7)]
)
def test_durations(written: Any, meant: float) -> None:
    assert seconds(written, ()) == meant


def arrivals(said: dict[str, Any], seed: int = 0) -> list[float]:
    scenario = read({"nodes": [{"name": "n"}], "pods": [{"name": "p", **said}]})
    return list(moments(scenario.pods[0].arrival, Random(seed)))


def test_arrivals() -> None:
    assert arrivals({}) == [0]
    assert arrivals({"count": 3, "at": "1s"}) == [1, 1, 1]
    assert arrivals({"count": 3, "every": "10s"}) == [0, 10, 20]
    assert arrivals({"every": "10s", "until": "25s", "at": 5}) == [5, 15]
    assert arrivals({"count": 3, "every": "10s", "until": "15s"}) == [0, 10]


def test_a_poisson_process_has_its_mean_and_its_seed() -> None:
    times = arrivals({"poisson": "10s", "count": 5000})
    assert times == arrivals({"poisson": "10s", "count": 5000})
    assert times != arrivals({"poisson": "10s", "count": 5000}, seed=1)
    gaps = [after - before for before, after in pairwise(times)]
    assert 9.5 < sum(gaps) / len(gaps) < 10.5
    assert 0.6 < sum(gap < 10.0 for gap in gaps) / len(gaps) < 0.66  # 1 - 1/e


@settings(max_examples=60)
@given(st.text(alphabet="nodespa: [{}],\n-\"'&*!5min#|", max_size=60))
def test_any_text_is_a_scenario_or_refused_in_a_sentence(text: str) -> None:
    try:
        Written(text)
    except ScenarioError as error:
        assert str(error)


def test_a_long_text_that_is_no_duration_is_refused_at_once() -> None:
    """Digits alone took time with the square of their number: 0.46 s of CPU for 4,000."""
    started = process_time()
    for text in ("9" * 20_000, "9s" * 20_000 + "x"):
        with pytest.raises(ScenarioError, match="is no duration"):
            seconds(text, ())
    assert process_time() - started < 1
