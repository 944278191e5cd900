"""What the annotations of a candidate mean, and what is said of those that mean nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.objects import ObjectMeta
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.policies.config_map import STATUS, ConfigMapSource
from policyengine.kube.policies.rollout_settings import (
    BadSetting,
    Suspension,
    budget,
    described,
    namespaces,
    share,
)
from policyengine.plugins.selectors.label_selector import Requirement
from policyengine.scheduler.rollout import Budget, Mode, RolloutSettings

P = "policyengine.io/"


def rollout_settings(annotations: dict[str, str]) -> RolloutSettings | None:
    return ConfigMapSource(ConfigMap(metadata=ObjectMeta(annotations=annotations))).settings


def test_without_a_mode_the_others_say_nothing() -> None:
    assert rollout_settings({}) is None
    assert rollout_settings({f"{P}budget": "nonsense", "other": "x"}) is None


def test_a_shadow_and_a_canary_with_everything() -> None:
    shadow = {f"{P}mode": "shadow", f"{P}shadow-sample": "12.5%"}
    assert rollout_settings(shadow) == RolloutSettings(Mode.SHADOW, sample=0.125)
    canary = {
        f"{P}mode": "canary",
        f"{P}canary-percent": "5",
        f"{P}canary-namespaces": "stage in (test, trial),!critical,team,a.b/c!=d",
        f"{P}budget": "unschedulable: 5%\ndivergence: 30\ncycleTime: 20ms\nwindow: 1h\nleast: 7\n",
    }
    assert rollout_settings(canary) == RolloutSettings(
        Mode.CANARY,
        share=0.05,
        namespaces=(
            Requirement("stage", "In", frozenset({"test", "trial"})),
            Requirement("critical", "DoesNotExist", frozenset()),
            Requirement("team", "Exists", frozenset()),
            Requirement("a.b/c", "NotIn", frozenset({"d"})),
        ),
        budget=Budget(unschedulable=0.05, divergence=0.3, cycle_time=0.02, window=3600.0, least=7),
    )


def test_a_budget_may_be_json() -> None:
    assert budget("b", '{"unschedulable": "5%", "least": 3}') == Budget(unschedulable=0.05, least=3)


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"mode": "Canary"}, "annotation `policyengine.io/mode`: `Canary` is no mode; did you mean `canary`?"),
        ({"mode": "xyz"}, "`xyz` is no mode; there are `shadow` and `canary`"),
        ({"mode": "canary"}, "a canary needs `policyengine.io/canary-namespaces` or `policyengine.io/canary-percent`"),
        ({"mode": "shadow", "canary-percent": "5"}, "is for the mode `canary`, and the mode is `shadow`"),
        ({"mode": "shadow", "shadow-sample": "101%"}, "`101%` is no percentage between 0 and 100"),
        ({"mode": "shadow", "shadow-sample": "-1"}, "`-1` is no percentage"),
        ({"mode": "canary", "canary-percent": "few"}, "`few` is no percentage"),
        ({"mode": "canary", "canary-namespaces": ""}, "is empty"),
        ({"mode": "canary", "canary-namespaces": "a in b"}, "`a in b` is no part of a label selector"),
        ({"mode": "canary", "canary-namespaces": "a=1,,b"}, "`,b` is no part of a label selector"),
        ({"mode": "shadow", "budget": "- a"}, "is no mapping such as `{unschedulable: 5%, window: 10m}`"),
        ({"mode": "shadow", "budget": "{a: [1]}"}, "is no mapping of names to plain values"),
        ({"mode": "shadow", "budget": "{least: 1, least: 2}"}, "gives `least` twice"),
        ({"mode": "shadow", "budget": "{least: 0}"}, "`least`: `0` is no number of pods between 1 and 9999"),
        ({"mode": "shadow", "budget": "{window: 25h}"}, "`window`: `25h` is no duration such as `20ms` or `10m`"),
        ({"mode": "shadow", "budget": "{cycletime: 1s}"}, "`cycletime` is unknown; did you mean `cycleTime`?"),
        ({"mode": "shadow", "budget": "{a"}, "is not YAML"),
        ({"mode": "shadow", "budget": "a: &x 1"}, "uses a YAML alias or anchor"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_sentence(annotations: dict[str, str], message: str) -> None:
    with pytest.raises(BadSetting) as raised:
        rollout_settings({f"{P}{name}": text for name, text in annotations.items()})
    assert message in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("read", [share, namespaces, budget])
@pytest.mark.parametrize("text", ["5", "a=", "5%", "{window: 5", "1"])
def test_a_hundred_thousand_spaces_hold_nobody_up(read: Callable[[str, object], object], text: str) -> None:
    with pytest.raises(BadSetting):
        read("it", f"{text}{' ' * 100_000}(")
    with pytest.raises(BadSetting):
        read("it", f"{text * 30_000}(")


@given(st.text(max_size=80))
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    for read in (share, namespaces, budget):
        try:
            read("it", text)
        except BadSetting as error:
            assert str(error)


words = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)


@given(st.dictionaries(words, words, max_size=4), words, st.lists(words, min_size=1, max_size=3))
def test_selectors_mean_what_kube_apiserver_says_they_mean(labels: dict[str, str], key: str, values: list[str]) -> None:
    held = labels.get(key)
    listed = ", ".join(values)
    for text, expected in (
        (f"{key} in ({listed})", held in values),
        (f"{key} notin ({listed})", held not in values),
        (f"{key}={values[0]}", held == values[0]),
        (f"{key} == {values[0]}", held == values[0]),
        (f"{key}!={values[0]}", held != values[0]),
        (key, held is not None),
        (f"!{key}", held is None),
    ):
        assert all(term.matches(labels) for term in namespaces("it", text)) is expected, text


def test_what_a_status_says_was_suspended_is_read_back() -> None:
    settings = RolloutSettings(Mode.CANARY, share=0.05, namespaces=(Requirement("a", "In", frozenset({"x", "y"})),))
    status = {"state": "suspended", "hash": "h", "message": "too slow", "rollout": {"settings": described(settings)}}

    def read(text: str) -> Suspension | None:
        return ConfigMapSource(ConfigMap(metadata=ObjectMeta(annotations={STATUS: text}))).suspension

    found = read(json.dumps(status))
    assert found is not None and found.why == "too slow"
    assert found.is_of("h", settings)
    assert not found.is_of("other", settings)
    assert not found.is_of("h", RolloutSettings(Mode.CANARY, share=0.06))
    for other in (
        "",
        "[]",
        "{",
        "[" * 200_000,
        json.dumps(status | {"state": "accepted"}),
        json.dumps(status | {"rollout": 1}),
    ):
        assert read(other) is None
