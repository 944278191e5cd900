"""Our counters against prometheus_client's own: the same values give the same text. Our metrics against those that
kube-scheduler shows: names, kinds, labels and buckets are its own where it has them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as TheirHistogram
from prometheus_client.exposition import generate_latest

from policyengine.server.metrics.scheduler_metrics import (
    Counter,
    Family,
    Gauge,
    Histogram,
    SchedulerMetrics,
    exponential,
)
from tests.server.metrics.real_metrics import PREFIXES, Described, described, real_page, recorded

BUCKETS = exponential(0.001, 2, 6)


class Only:
    """A registry of one metric."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> list[object]:
        return [self._family.collect()]


def text(family: Family) -> list[str]:
    return generate_latest(Only(family)).decode().splitlines()  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([*BUCKETS, 0.0, 0.0015, 1.0, 7.5])), max_size=30)
)
def test_a_histogram_shows_what_prometheus_clients_shows(values: list[tuple[str, float]]) -> None:
    ours = Histogram("h_seconds{which}", "Help.", BUCKETS)
    registry = CollectorRegistry()
    theirs = TheirHistogram("h_seconds", "Help.", ("which",), buckets=BUCKETS, registry=registry)
    for which, value in values:
        ours.observe((which,), value)
        theirs.labels(which).observe(value)
    expected = [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
    assert sorted(text(ours)) == sorted(expected)


def test_a_counter_without_labels_is_shown_from_the_start() -> None:
    assert text(Counter("c_total", "Help."))[-1] == "c_total 0.0"


def test_a_gauge_forgets_what_came_to_nothing() -> None:
    gauge = Gauge("g{x}", "Help.")
    gauge.add(("a",), 2)
    gauge.add(("b",), 1)
    gauge.add(("a",), -2)
    assert text(gauge)[2:] == ['g{x="b"} 1.0']


# --- beside the real one ---------------------------------------------------------------------------------

UNSEEN = {"scheduler_permit_wait_duration_seconds"}
"""It shows with a plugin at Permit only; its labels and buckets are those of pkg/scheduler/metrics/metrics.go."""
OURS: dict[str, Family] = {family.name: family for family in SchedulerMetrics().families()}


@pytest.mark.parametrize("real", recorded(), ids=lambda real: real.name)
def test_a_metric_of_kube_scheduler_has_its_kind_its_labels_and_its_buckets(real: Described) -> None:
    ours = OURS.get(real.name)
    if ours is None:
        assert real.stability == "ALPHA", "all that will stay are there"
        return
    assert (ours.kind, tuple(sorted(ours.labels))) == (real.kind, real.labels)
    assert ours.buckets == pytest.approx([float(bound) for bound in real.buckets])


def test_no_metric_goes_by_its_prefix_that_it_has_not() -> None:
    assert {name for name in OURS if name.startswith(PREFIXES)} - {one.name for one in recorded()} == UNSEEN


async def test_the_record_is_what_the_real_one_shows(tmp_path: Path) -> None:
    shown = {one.name: one for one in described(await real_page(tmp_path))}
    for one in recorded():
        assert shown.get(one.name, one) == one
    assert {one.name for one in recorded() if one.stability != "ALPHA"} <= set(shown)
