"""Several schedulers on one cluster: each leads by its own lease, and the audit from outside finds what is wrong."""

from dataclasses import replace

import pytest

from benchmarks.cluster import Placed, Watcher, _Meta, _Spec
from benchmarks.overcommit import overcommitted, thousandths
from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.sharing import _policy, sharing
from policyengine.catalogue import compile_policy

SMALL = WORKLOADS["peer-basic"].sized(3, 12)


def test_pods_are_split_pod_by_pod() -> None:
    names = [pod["spec"]["schedulerName"] for pod in replace(SMALL, schedulers=3).pod_objects("s")]
    assert names == ["s-0", "s-1", "s-2"] * 4
    assert {pod["spec"]["schedulerName"] for pod in SMALL.pod_objects("s")} == {"s"}


def test_a_node_that_holds_more_than_it_has_is_found() -> None:
    crowded = WORKLOADS["peer-basic"].sized(2, 42)
    fits = {f"pod-{i:06d}": "node-000000" for i in range(40)}
    assert list(overcommitted(crowded, fits)) == []
    told = list(overcommitted(crowded, {f"pod-{i:06d}": "node-000000" for i in range(41)}))
    assert told == ["node-000000: 4.1 of 4 cpu"]


def test_initial_pods_count_too() -> None:
    workload = WORKLOADS["PreemptionAsync"].sized(1, 5)
    assert list(overcommitted(workload, {f"pod-{i:06d}": "node-000000" for i in range(4)})) == []
    assert list(overcommitted(workload, {f"pod-{i:06d}": "node-000000" for i in range(5)})) == [
        "node-000000: 4.1 of 4 cpu"
    ]


def test_quantities_are_read_as_workloads_write_them() -> None:
    assert thousandths("100m") == 100
    assert thousandths("4") == 4_000
    assert thousandths("500Mi") == 500 * 2**20 * 1_000
    assert thousandths("32Gi") == 32 * 2**30 * 1_000


def test_a_pod_that_is_bound_twice_is_seen() -> None:
    watcher = Watcher(None)  # type: ignore[arg-type]
    for node in ("", "node-1", "node-1", "node-2"):
        watcher._see(Placed(_Meta(name="pod-000000"), _Spec(node_name=node)))
    assert watcher.moved == ["pod-000000"]
    assert watcher.nodes == {"pod-000000": "node-1"} and len(watcher.times) == 1


async def test_two_schedulers_place_every_pod_once_and_each_leads() -> None:
    told: list[str] = []
    figures = await sharing(WORKLOADS["peer-basic"].sized(6, 30), 2, None, 1, told.append)
    (alone,), (together,), (apart,) = figures.alone, figures.together, figures.apart
    assert alone.bound == together.bound == apart.bound == 30
    assert alone.events == together.events == apart.events == 30
    assert [share.bound for share in together.shares] == [15, 15]
    assert len({share.holder for share in together.shares}) == 2
    assert all(share.holder.startswith(share.scheduler) for share in together.shares)
    assert all(share.checks > 0 and share.cpu_seconds > 0 for share in together.shares)
    assert (together.moved, together.overcommitted) == (0, ())
    assert (apart.moved, apart.overcommitted, apart.apart) == (0, (), True)
    assert set(figures.ratios) == {"time / one scheduler", "time apart / one scheduler"}
    assert len(told) == 3


async def test_apart_a_full_cluster_is_never_overfull() -> None:
    figures = await sharing(WORKLOADS["peer-basic"].sized(4, 160), 2, None, 1, lambda told: None)
    (apart,) = figures.apart
    assert (apart.bound, apart.overcommitted) == (160, ())


@pytest.mark.parametrize("zones", [(), ("zone0", "zone2")])
def test_a_policy_that_keeps_to_its_zones_compiles(zones: tuple[str, ...]) -> None:
    profile = compile_policy(_policy("share-0", zones))
    assert profile.scheduler_name == "share-0"
    assert [one.name for one in profile.filters].count("own zones") == bool(zones)
