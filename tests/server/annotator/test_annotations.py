"""What is written to a node, and when not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.quantity import milli_value, value
from policyengine.server.annotator.annotations import Load, Patch, Settings, patch_of
from policyengine.server.annotator.measurement import Statistics
from tests.server.annotator.world import node

NOW = 1_800_000_000.0
SETTINGS = Settings(forecasts=True)
LOAD = {
    "cpu": Statistics(2.5, 0.25, 3.5, NOW - 10, 3.0),
    "memory": Statistics(4e9, 1e9, 6 * 2**30, NOW - 5, 5e9),
}
WRITTEN = {
    "mean-free-cpu": "2500",
    "std-free-cpu": "250",
    "forcasted-free-cpu": "3000",
    "mean-free-memory": "4000000000",
    "std-free-memory": "1000000000",
    "forcasted-free-memory": "5000000000",
    "policyengine.io/usage-cpu": "500m",
    "policyengine.io/usage-memory": str(2 * 2**30),
    "policyengine.io/usage-at": "2027-01-15T07:59:55Z",
}


def after(annotations: dict[str, str], patch: Patch) -> dict[str, str]:
    return {name: text for name, text in (annotations | patch).items() if text is not None}


def test_without_a_forecast_none_is_written_and_another_s_is_left_alone() -> None:
    load = {"cpu": Statistics(2.5, 0.25, 3.5, NOW - 10)}
    theirs = {"forcasted-free-cpu": "7"}
    patch = patch_of(node("a", theirs), load, Settings(), NOW)
    assert "mean-free-cpu" in patch and not any("forcasted" in name for name in patch)


def test_what_is_measured_no_longer_is_removed() -> None:
    patch = patch_of(node("a", WRITTEN), {"cpu": LOAD["cpu"]}, SETTINGS, NOW)
    assert {name for name, text in patch.items() if text is None} == {name for name in WRITTEN if "memory" in name}


MARKED = WRITTEN | {"policyengine.io/stale": "true"}
NEAR = LOAD | {"cpu": Statistics(2.52, 0.26, 3.47, NOW + 60, 3.02)}
FAR = LOAD | {"cpu": Statistics(2.55, 0.25, 3.5, NOW + 60, 3.0)}
FUTURE = Statistics(2.5, 0.25, 3.5, NOW + 1e12)
# What the node has, what is measured, and when -> what is written.
PATCHES: dict[str, tuple[dict[str, str], Load, float, Patch]] = {
    "a node is told what it has free and what it uses": ({}, LOAD, 0, WRITTEN),
    "what moved within the tolerance is not written": (WRITTEN, NEAR, 60, {}),
    "what moved by more is": (
        *(WRITTEN, FAR, 60),
        {"mean-free-cpu": "2550", "policyengine.io/usage-at": "2027-01-15T08:01:00Z"},
    ),
    "what is not measured stays for a while": (WRITTEN, {}, 100, {}),
    "what grows old is marked": (WRITTEN, {}, 200, {"policyengine.io/stale": "true"}),
    "what is marked stays for a while": (MARKED, {}, 300, {}),
    "and is removed": (MARKED, {}, 1000, dict.fromkeys(MARKED)),
    "a fresh measurement takes the mark away": (MARKED, LOAD, 0, {"policyengine.io/stale": None}),
    "a measurement that is old itself counts as none": ({}, LOAD, 500, {}),
    "what was measured in the future was not measured": ({}, {"cpu": FUTURE, "memory": FUTURE}, 0, {}),
    "clocks may differ a little": (WRITTEN, {}, -50, {}),
}


@pytest.mark.parametrize(("had", "load", "after", "patch"), PATCHES.values(), ids=PATCHES)
def test_what_is_written(had: dict[str, str], load: Load, after: float, patch: Patch) -> None:
    assert patch_of(node("a", had), load, SETTINGS, NOW + after) == patch


def test_what_is_to_be_refreshed_is_written_though_it_has_not_moved() -> None:
    late = {"cpu": Statistics(2.5, 0.25, 3.5, NOW + 400, 3.0)}
    assert patch_of(node("a", WRITTEN), late, SETTINGS, NOW + 400)["policyengine.io/usage-at"] is not None


def test_annotations_of_others_are_left_alone() -> None:
    foreign = {"mean-free-cpu": "1", "congestion-factor": "7", "x": "y"}
    assert patch_of(node("a", foreign), {}, SETTINGS, NOW + 1e6) == {}
    assert "congestion-factor" not in patch_of(node("a", foreign | WRITTEN), {}, SETTINGS, NOW + 1e6)


def test_the_congestion_is_a_whole_number_where_it_is_asked_for() -> None:
    settings = Settings(congestion=True)
    patch = patch_of(node("a"), {"congestion": Statistics(10.0, 0.0, 41.6, NOW, 10.0)}, settings, NOW)
    assert patch == {"congestion-factor": "42", "policyengine.io/usage-at": "2027-01-15T08:00:00Z"}


@pytest.mark.parametrize("text", ["", "soon", "2027-13-01T00:00:00Z", "2127-01-01T00:00:00Z"])
def test_a_time_that_is_none_or_to_come_is_as_old_as_can_be(text: str) -> None:
    had = WRITTEN | {"policyengine.io/usage-at": text}
    assert after(had, patch_of(node("a", had), {}, SETTINGS, NOW)) == {}
    assert after(had, patch_of(node("a", had), LOAD, SETTINGS, NOW)) == WRITTEN


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "much"])
def test_a_value_that_is_no_number_is_written_over(text: str) -> None:
    assert patch_of(node("a", WRITTEN | {"mean-free-cpu": text}), LOAD, SETTINGS, NOW)["mean-free-cpu"] == "2500"


statistic = st.builds(Statistics, *[st.floats(0, 1e12)] * 3, st.just(NOW), st.none() | st.floats(0, 1e12))


@given(
    st.fixed_dictionaries({}, optional={"cpu": statistic, "memory": statistic}),
    st.dictionaries(st.sampled_from(SETTINGS.owned), st.text(max_size=6)),
)
def test_whatever_stood_there_a_second_patch_has_nothing_to_say(load: Load, had: dict[str, str]) -> None:
    written = after(had, patch_of(node("a", had), load, SETTINGS, NOW))
    assert patch_of(node("a", written), load, SETTINGS, NOW) == {}
    if "cpu" in load:
        assert milli_value(written["policyengine.io/usage-cpu"]) >= 0
    if "memory" in load:
        assert value(written["policyengine.io/usage-memory"]) >= 0
