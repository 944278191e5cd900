"""Ours are kube-scheduler's metrics where it has them: names, kinds, labels and buckets, as the real one shows them."""

from pathlib import Path

import pytest

from policyengine.server.metrics.scheduler_metrics import Family, SchedulerMetrics
from tests.server.metrics.real_metrics import PREFIXES, Described, described, real_page, recorded

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
