"""What the resource plugins say no node's score is above: no exact score is, and few are below.

The exact scores are worked out here, from amounts that the test itself keeps count of.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.view import ClusterView
from policyengine.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from policyengine.plugins.node_resources_fit import NodeResourcesFit
from policyengine.plugins.offer_shares import OfferShares
from tests.builders import make_node, make_pod

Amounts = dict[str, int]
CPU, MEMORY = "cpu", "memory"
WEIGHTS = {CPU: 3, MEMORY: 2}
SIZES = {CPU: (1000, 2000, 3500, 7000, 96_000), MEMORY: (1, 1_000_000_007, 4 << 30, 7 << 30, 6 << 40)}
ASKED = {CPU: (0, 1, 37, 100, 333, 1000, 9000), MEMORY: (0, 1, 100 << 20, 1_000_000_007, 3 << 30, 45 << 40)}


class Cluster:
    """Nodes and pods that come and go, and what each node offers and holds."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.view = ClusterView()
        self.offers: dict[str, Amounts] = {}
        self.standing: dict[str, tuple[str, Amounts]] = {}
        self.number = 0
        self.sizes = SIZES if rng.random() < 0.6 else {name: (rng.choice(sizes),) for name, sizes in SIZES.items()}
        for number in range(rng.randint(1, 30)):
            self.set_node(f"n{number}")

    def set_node(self, name: str) -> None:
        offer = {resource: self.rng.choice(sizes) for resource, sizes in self.sizes.items()}
        self.offers[name] = offer
        self.view.add_or_update_node(make_node(name).allocatable({**written(offer), "pods": "110"}).build())

    def pod(self, node: str = "") -> tuple[str, Amounts]:
        self.number += 1
        asked = {resource: self.rng.choice(amounts) for resource, amounts in ASKED.items()}
        if node and self.rng.random() < 0.6:
            asked = {resource: min(amount, self.offers[node][resource] // 9) for resource, amount in asked.items()}
        pod = make_pod(f"p{self.number}").req(written(asked))
        built = (pod.node(node) if node else pod).build()
        self.view.add_or_update_pod(built)
        return built.metadata.uid, asked

    def step(self) -> None:
        rng, view = self.rng, self.view
        pick = rng.random()
        if pick < 0.08:
            self.set_node(f"n{rng.randint(0, 34)}")
        elif pick < 0.12 and view.nodes.n > 1:
            name = rng.choice(view.nodes.names)
            view.remove_node(name)
            del self.offers[name]
            self.standing = {uid: pod for uid, pod in self.standing.items() if pod[0] != name}
            for uid in [uid for uid, pod in view.pods.items() if pod.node_name == name]:
                view.remove_pod(uid)
        elif pick < 0.4 and self.standing:
            uid = rng.choice(list(self.standing))
            view.remove_pod(uid)
            del self.standing[uid]
        else:
            node = rng.choice(view.nodes.names)
            uid, asked = self.pod(node)
            self.standing[uid] = (node, asked)

    def used(self, node: str) -> Amounts:
        held = [asked for name, asked in self.standing.values() if name == node]
        return {resource: sum(asked[resource] for asked in held) for resource in SIZES}


def written(amounts: Mapping[str, int]) -> dict[str, str | int]:
    return {CPU: f"{amounts[CPU]}m", MEMORY: str(amounts[MEMORY])}


def points(offer: Amounts, used: Amounts, packs: bool) -> dict[str, int]:
    """LeastAllocated's and MostAllocated's, of each resource, by fractions."""
    left = {name: max(Fraction(offer[name] - used[name], offer[name]), Fraction(0)) for name in offer}
    return {name: floor(100 * (1 - share)) if packs else floor(100 * share) for name, share in left.items()}


def mean(scores: Mapping[str, int], weights: Mapping[str, int]) -> int:
    return sum(scores[name] * weights[name] for name in scores) // sum(weights.values())


def evenness(offer: Amounts, used: Amounts) -> int:
    """B of two resources, as kube-scheduler has it: in doubles."""
    first, second = (min(float(used[name]) / float(offer[name]), 1.0) for name in (CPU, MEMORY))
    return int((1 - abs((first - second) / 2)) * 100)


PLAIN = {CPU: 1, MEMORY: 1}
RESOURCES = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]
FITS = [
    (NodeResourcesFit(), False, PLAIN),
    (NodeResourcesFit({"strategy": "MostAllocated"}), True, PLAIN),
    (NodeResourcesFit({"scoringStrategy": {"type": "LeastAllocated", "resources": RESOURCES}}), False, WEIGHTS),
    (NodeResourcesFit({"scoringStrategy": {"type": "MostAllocated", "resources": RESOURCES}}), True, WEIGHTS),
]
BALANCED = NodeResourcesBalancedAllocation()


def compare(cluster: Cluster) -> tuple[int, int]:
    """How many ceilings are those of nodes with room for a pod, and how many of these are above the exact score."""
    uid, asked = cluster.pod()
    info, snapshot = cluster.view.pods[uid], cluster.view.snapshot()
    fitting = loose = 0

    def hold(ceilings: np.ndarray[tuple[int], np.dtype[np.int16]] | None, exact: list[int]) -> None:
        nonlocal fitting, loose
        assert ceilings is not None
        assert ceilings.dtype == np.int16
        assert len(ceilings) == len(exact)
        for name, high, score in zip(snapshot.nodes.names, ceilings.tolist(), exact, strict=True):
            assert score <= high <= 200
            used = cluster.used(name)
            if all(used[one] + asked[one] <= cluster.offers[name][one] for one in asked):
                assert high <= score + 1
                fitting += 1
                loose += high > score

    rows = [(cluster.offers[name], cluster.used(name)) for name in snapshot.nodes.names]
    after = [(offer, {name: used[name] + asked[name] for name in used}) for offer, used in rows]
    for fit, packs, weights in FITS:
        _, state = fit.pre_score(info, snapshot)
        hold(fit.ceilings(state, snapshot), [mean(points(*row, packs), weights) for row in after])
    status, state = BALANCED.pre_score(info, snapshot)
    if status.is_success:
        gains = [50 + evenness(*late) - evenness(*early) for early, late in zip(rows, after, strict=True)]
        hold(BALANCED.ceilings(state, snapshot), [50 + gain // 2 for gain in gains])
    cluster.view.remove_pod(uid)
    return fitting, loose


def history(seed: int) -> tuple[int, int]:
    cluster = Cluster(Random(seed))
    fitting = loose = 0
    for _ in range(8):
        for _ in range(cluster.rng.choice((0, 1, 1, 2, 5, 30))):
            cluster.step()
        counts = compare(cluster)
        fitting, loose = fitting + counts[0], loose + counts[1]
    return fitting, loose


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_score_is_above_its_ceiling_after_any_history(seed: int) -> None:
    history(seed)


def test_few_scores_are_below_theirs() -> None:
    counts = [history(seed) for seed in range(20)]
    assert sum(fitting for fitting, _ in counts) > 2000
    assert sum(loose for _, loose in counts) < 0.1 * sum(fitting for fitting, _ in counts)


@pytest.mark.parametrize("odd", [{"cpu": "0"}, {"memory": "0"}, {"memory": "4Ei"}])
def test_there_are_none_where_a_node_is_unusual(odd: dict[str, str | int]) -> None:
    view = ClusterView()
    usual: dict[str, str | int] = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    view.add_or_update_node(make_node("n").allocatable(usual).build())
    view.add_or_update_pod(make_pod("p").req(cpu="1", memory="1Gi").build())
    info = next(iter(view.pods.values()))

    def has_ceilings() -> list[bool]:
        snapshot = view.snapshot()
        fit, _, _ = FITS[0]
        asked = [(plugin, plugin.pre_score(info, snapshot)[1]) for plugin in (fit, BALANCED)]
        return [plugin.ceilings(state, snapshot) is not None for plugin, state in asked]

    assert has_ceilings() == [True, True]
    view.add_or_update_node(make_node("n").allocatable(usual | odd).build())
    assert has_ceilings() == [False, False]
    view.add_or_update_node(make_node("n").allocatable(usual).build())
    assert has_ceilings() == [True, True]


amounts = st.one_of(st.integers(1, 300), st.integers(1, 2**46))


@settings(max_examples=300, deadline=None)
@given(
    offers=st.lists(amounts, min_size=1, max_size=6),
    later=amounts,
    request=st.one_of(st.integers(0, 300), st.integers(0, 2**62)),
    whole=st.sampled_from((12_800, 25_600)),
)
def test_a_share_is_never_too_large_and_hardly_too_small(
    offers: list[int], later: int, request: int, whole: int
) -> None:
    shares = OfferShares(np.array(offers, dtype=np.int64), whole)
    for replaced in (None, later):
        if replaced is not None:
            shares.write(0, replaced)
            offers = [replaced, *offers[1:]]
        found = shares.of(request)
        each = [found] * len(offers) if isinstance(found, int) else found.tolist()
        for share, offer in zip(each, offers, strict=True):
            exact = Fraction(whole * min(request, offer), offer)
            assert share <= exact
            assert exact - share < Fraction(11, 10)
            assert ceil(exact) <= whole
