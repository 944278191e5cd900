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
LOAD = Load(Statistics(2.5, 0.25, 3.5, NOW - 10, 3.0), Statistics(4e9, 1e9, 6 * 2**30, NOW - 5, 5e9))
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


def test_a_node_is_told_what_it_has_free_and_what_it_uses() -> None:
    assert patch_of(node("a"), LOAD, SETTINGS, NOW) == WRITTEN


def test_without_a_forecast_none_is_written_and_another_s_is_left_alone() -> None:
    load = Load(Statistics(2.5, 0.25, 3.5, NOW - 10), None)
    theirs = {"forcasted-free-cpu": "7"}
    patch = patch_of(node("a", theirs), load, Settings(), NOW)
    assert "mean-free-cpu" in patch and not any("forcasted" in name for name in patch)


def test_what_moved_within_the_tolerance_is_not_written_until_it_is_to_be_refreshed() -> None:
    near = Load(Statistics(2.52, 0.26, 3.47, NOW + 60, 3.02), LOAD.memory)
    assert patch_of(node("a", WRITTEN), near, SETTINGS, NOW + 60) == {}
    far = Load(Statistics(2.55, 0.25, 3.5, NOW + 60, 3.0), LOAD.memory)
    assert patch_of(node("a", WRITTEN), far, SETTINGS, NOW + 60) == {
        "mean-free-cpu": "2550",
        "policyengine.io/usage-at": "2027-01-15T08:01:00Z",
    }
    late = Load(Statistics(2.5, 0.25, 3.5, NOW + 400, 3.0), None)
    assert patch_of(node("a", WRITTEN), late, SETTINGS, NOW + 400)["policyengine.io/usage-at"] is not None


def test_what_is_measured_no_longer_is_removed() -> None:
    patch = patch_of(node("a", WRITTEN), Load(cpu=LOAD.cpu), SETTINGS, NOW)
    assert {name for name, text in patch.items() if text is None} == {name for name in WRITTEN if "memory" in name}


def test_what_grows_old_is_marked_and_then_removed() -> None:
    assert patch_of(node("a", WRITTEN), Load(), SETTINGS, NOW + 100) == {}
    assert patch_of(node("a", WRITTEN), Load(), SETTINGS, NOW + 200) == {"policyengine.io/stale": "true"}
    marked = WRITTEN | {"policyengine.io/stale": "true"}
    assert patch_of(node("a", marked), Load(), SETTINGS, NOW + 300) == {}
    assert after(marked, patch_of(node("a", marked), Load(), SETTINGS, NOW + 1000)) == {}


def test_a_fresh_measurement_takes_the_mark_away() -> None:
    patch = patch_of(node("a", WRITTEN | {"policyengine.io/stale": "true"}), LOAD, SETTINGS, NOW)
    assert patch == {"policyengine.io/stale": None}


def test_a_measurement_that_is_old_itself_counts_as_none() -> None:
    assert patch_of(node("a"), LOAD, SETTINGS, NOW + 500) == {}


def test_annotations_of_others_are_left_alone() -> None:
    foreign = {"mean-free-cpu": "1", "congestion-factor": "7", "x": "y"}
    assert patch_of(node("a", foreign), Load(), SETTINGS, NOW + 1e6) == {}
    assert "congestion-factor" not in patch_of(node("a", foreign | WRITTEN), Load(), SETTINGS, NOW + 1e6)


def test_the_congestion_is_a_whole_number_where_it_is_asked_for() -> None:
    settings = Settings(congestion=True)
    patch = patch_of(node("a"), Load(congestion=Statistics(10.0, 0.0, 41.6, NOW, 10.0)), settings, NOW)
    assert patch == {"congestion-factor": "42", "policyengine.io/usage-at": "2027-01-15T08:00:00Z"}


@pytest.mark.parametrize("text", ["", "soon", "2027-13-01T00:00:00Z"])
def test_a_time_that_is_none_is_as_old_as_can_be(text: str) -> None:
    had = WRITTEN | {"policyengine.io/usage-at": text}
    assert after(had, patch_of(node("a", had), Load(), SETTINGS, NOW)) == {}
    assert after(had, patch_of(node("a", had), LOAD, SETTINGS, NOW)) == WRITTEN


def test_a_time_to_come_is_as_old_as_can_be_but_for_clocks_that_differ_a_little() -> None:
    had = WRITTEN | {"policyengine.io/usage-at": "2127-01-01T00:00:00Z"}
    assert after(had, patch_of(node("a", had), Load(), SETTINGS, NOW)) == {}
    assert after(had, patch_of(node("a", had), LOAD, SETTINGS, NOW)) == WRITTEN
    assert patch_of(node("a", WRITTEN), Load(), SETTINGS, NOW - 50) == {}


def test_what_was_measured_in_the_future_was_not_measured() -> None:
    far = Statistics(2.5, 0.25, 3.5, NOW + 1e12)
    assert patch_of(node("a"), Load(far, far), SETTINGS, NOW) == {}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "much"])
def test_a_value_that_is_no_number_is_written_over(text: str) -> None:
    assert patch_of(node("a", WRITTEN | {"mean-free-cpu": text}), LOAD, SETTINGS, NOW)["mean-free-cpu"] == "2500"


statistic = st.builds(Statistics, *[st.floats(0, 1e12)] * 3, st.just(NOW), st.none() | st.floats(0, 1e12))


@given(
    st.builds(Load, st.none() | statistic, st.none() | statistic),
    st.dictionaries(st.sampled_from(SETTINGS.owned), st.text(max_size=6)),
)
def test_whatever_stood_there_a_second_patch_has_nothing_to_say(load: Load, had: dict[str, str]) -> None:
    written = after(had, patch_of(node("a", had), load, SETTINGS, NOW))
    assert patch_of(node("a", written), load, SETTINGS, NOW) == {}
    if load.cpu is not None:
        assert milli_value(written["policyengine.io/usage-cpu"]) >= 0
    if load.memory is not None:
        assert value(written["policyengine.io/usage-memory"]) >= 0
