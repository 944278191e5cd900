"""`--fail-on`."""

from __future__ import annotations

import pytest

from policyengine.plan.condition import WrongCondition, check, holds

OLD = {
    "waiting": 1,
    "evictions": 3,
    "wait": {"p50": 1.0, "p99": 10.0},
    "utilisation": {"cpu": 0.5, "nvidia.com/gpu": 0.9},
    "quotas": {"the old team": {"cpu": 0.5}},
}
NEW = {
    "waiting": 0,
    "evictions": 3,
    "wait": {"p50": 2.0, "p99": 13.0},
    "utilisation": {"cpu": 0.6, "nvidia.com/gpu": 0.8},
    "quotas": {"the old team": {"cpu": 0.6}},
}


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("waiting > 0", False),
        ("waiting < old", True),
        ("p99(wait) > 1.2 * old", True),
        ("waiting > 0 || p99(wait) > 1.2 * old", True),
        ("p99(wait) > 1.5 * old || (evictions > old && waiting > 0)", False),
        ("p50( wait ) == 2.0 * old.wait.p50", True),
        ("evictions <= old.evictions", True),
        ('utilisation["nvidia.com/gpu"] < old', True),
        ("utilisation.cpu < old", False),
        ('quotas["the old team"].cpu > old', True),
        ("quotas.exists(name, quotas[name].cpu > old)", True),
        ("(waiting + 1) > old + 1", False),
        ("(wait.p99 - old) / old > 0.2", True),
        ("double(evictions) > 0.9 * double(old)", True),
        ("p99(old.wait) > old.wait.p99 || p99(wait) > (1.2 * (old))", True),
    ],
)
def test_a_condition_is_about_the_new_run_and_old_stands_for_the_same_figure_of_the_old(
    condition: str, wanted: bool
) -> None:
    assert holds(condition, OLD, NEW) is wanted


@pytest.mark.parametrize(
    "condition", ["", "waitng > 0", "waiting >", "waiting", "wait > 3", "old", "1 +", "((", "p99(evictions) > 1"]
)
def test_what_is_no_condition_is_told_with_what_there_is(condition: str) -> None:
    with pytest.raises(WrongCondition):
        holds(condition, OLD, NEW)
    if condition == "waitng > 0":
        with pytest.raises(WrongCondition, match="the figures are evictions, quotas, utilisation, wait, waiting"):
            holds(condition, OLD, NEW)


@pytest.mark.parametrize(
    "condition",
    [
        "waitng > 0",
        "waiting >",
        "waiting",
        "wait > 3",
        "old",
        "waiting > 0 && waitng > 0",
        "p99(wait) > 1.2 * old && wait.p42 > 0",
        "waiting == 0 || gangs.halves > 0",
        "waiting == 0 || old.wait.p42 > 0.0",
        "waiting == 0 || old.waitng > 0",
        'waiting == 0 || wait["p42"] > 0.0',
        "waiting == 0 || p42(wait) > 0.0",
    ],
)
def test_what_is_no_condition_is_known_before_anything_is_played(condition: str) -> None:
    with pytest.raises(WrongCondition):
        check(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "waiting > old",
        'utilisation["example.com/gpu"] < 0.5',
        "evictions / pods > 1",
        "quotas.exists(name, quotas[name].cpu > 1.0)",
        "waiting > 0 && old.wait.p99 > 1.0",
    ],
)
def test_a_condition_about_a_resource_that_may_come_is_one(condition: str) -> None:
    check(condition)
