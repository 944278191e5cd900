"""The resource plugins filter and score as their definition says, in whole columns and in few rows alike.

The exact answers are worked out here by fractions, from amounts that the test itself keeps count of.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from math import floor, sqrt
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.framework.changes import FEW
from policyengine.plugins.resources.balanced_allocation import NodeResourcesBalancedAllocation
from policyengine.plugins.resources.fit import NodeResourcesFit
from tests.builders import make_node, make_pod

Amounts = dict[str, int]
CPU, MEMORY, GPU = "cpu", "memory", "vendor.example/gpu"
SIZES = {
    CPU: (1000, 2000, 3500, 7000, 96_000),
    MEMORY: (1, 1_000_000_007, 4 << 30, 7 << 30, 6 << 40),
    GPU: (1, 3, 8),
}
ODD = {CPU: (0, 9 << 30), MEMORY: (0, 41 << 40, 45 << 40, 4 << 50, 4 << 60), GPU: (0,)}
"""What not every node offers, and amounts about 2**52/100, 2**52 and beyond 2**53."""
ASKED = {
    CPU: (1, 37, 100, 333, 1000, 9000),
    MEMORY: (1, 100 << 20, 1_000_000_007, 3 << 30, 45 << 40, 4 << 50),
    GPU: (1, 2),
}
WEIGHTS = {CPU: 3, MEMORY: 1, GPU: 5}
RESOURCES = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]
SHAPE = [(0, 10), (35, 3), (100, 7)]
RATIO = {"shape": [{"utilization": utilization, "score": score} for utilization, score in SHAPE]}


class Cluster:
    """Nodes and pods that come and go, and what each node offers and holds."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.view = ClusterView()
        self.oddness = rng.choice((0.0, 0.0, 0.02, 0.3))
        self.offers: dict[str, Amounts] = {}
        self.standing: dict[str, tuple[str, Amounts]] = {}
        self.number = 0
        for number in range(rng.randint(1, 3 * FEW)):
            self.set_node(f"n{number}")

    def set_node(self, name: str) -> None:
        rng = self.rng
        offer = {
            one: rng.choice(ODD[one] if rng.random() < self.oddness else sizes)
            for one, sizes in SIZES.items()
            if one != GPU or self.oddness == 0 or rng.random() < 0.7
        }
        self.offers[name] = offer
        self.view.add_or_update_node(make_node(name).allocatable({**written(offer), "pods": "9"}).build())

    def pod(self, node: str = "") -> tuple[str, Amounts]:
        self.number += 1
        asked = {
            one: self.rng.choice(amounts) for one, amounts in ASKED.items() if one != GPU or self.rng.random() < 0.4
        }
        pod = make_pod(f"p{self.number}").req(written(asked))
        built = (pod.node(node) if node else pod).build()
        self.view.add_or_update_pod(built)
        return built.metadata.uid, asked

    def step(self) -> None:
        rng, view = self.rng, self.view
        pick = rng.random()
        if pick < 0.1:
            self.set_node(f"n{rng.randint(0, 3 * FEW)}")
        elif pick < 0.4 and self.standing:
            uid = rng.choice(list(self.standing))
            view.remove_pod(uid)
            del self.standing[uid]
        else:
            node = rng.choice(view.nodes.names)
            uid, asked = self.pod(node)
            self.standing[uid] = (node, asked)

    def held(self, node: str) -> list[Amounts]:
        return [asked for name, asked in self.standing.values() if name == node]


def written(amounts: Mapping[str, int]) -> dict[str, str | int]:
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}


def allocation(offer: Amounts, used: Amounts, weights: Mapping[str, int], kind: str) -> int:
    """LeastAllocated, MostAllocated or RequestedToCapacityRatio, of the resources in `used`."""
    total = shares = 0
    for name, amount in used.items():
        if not offer.get(name):
            continue
        part = min(Fraction(amount, offer[name]), Fraction(1))
        points = floor(100 * part)
        if kind == "LeastAllocated":
            points = floor(100 * (1 - part))
        elif kind == "RequestedToCapacityRatio":
            points = shaped(points)
        if points or kind != "RequestedToCapacityRatio":
            total += points * weights[name]
            shares += weights[name]
    if kind == "RequestedToCapacityRatio":
        return floor(Fraction(total, shares) + Fraction(1, 2)) if shares else 0
    return total // shares if shares else 0


def shaped(utilization: int) -> int:
    """On the line between the two points of the shape, what is left over cut off towards zero."""
    (before, low), (after, high) = next(two for two in pairwise(SHAPE) if utilization <= two[1][0])
    return 10 * low + int(Fraction(10 * (high - low) * (utilization - before), after - before))


def evenness(offer: Amounts, used: Amounts) -> int:
    """B of the resources in `used`, as kube-scheduler has it: in doubles."""
    fractions = [min(float(amount) / float(offer[name]), 1.0) for name, amount in used.items() if offer.get(name)]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = 0.0
        for fraction in fractions:
            mean += fraction
        mean /= len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)


def in_parts(plugin: Any, state: Any, snapshot: Snapshot) -> list[int]:
    """The scores of all rows, as a whole column, in few rows and row by row, which are the same."""
    rows = np.arange(snapshot.nodes.n)
    whole: list[int] = plugin.score(state, snapshot, rows).tolist()
    parts = [rows[start : start + 3] for start in range(0, len(rows), 3)]
    assert [score for part in parts for score in plugin.score(state, snapshot, part).tolist()] == whole
    assert [plugin.score_row(state, snapshot, row) for row in rows.tolist()] == whole
    return whole


PLAIN = {CPU: 1, MEMORY: 1}
FITS = [
    (kind, weights, NodeResourcesFit({"scoringStrategy": {"type": kind, **more, **ratio}}))
    for kind, ratio in (
        ("LeastAllocated", {}),
        ("MostAllocated", {}),
        ("RequestedToCapacityRatio", {"requestedToCapacityRatio": RATIO}),
    )
    for weights, more in ((PLAIN, {}), (WEIGHTS, {"resources": RESOURCES}))
]
BALANCES = [
    (list(PLAIN), NodeResourcesBalancedAllocation()),
    (list(WEIGHTS), NodeResourcesBalancedAllocation({"resources": [{"name": one} for one in WEIGHTS]})),
]


def compare(cluster: Cluster) -> None:
    uid, asked = cluster.pod()
    info, snapshot = cluster.view.pods[uid], cluster.view.snapshot()
    nodes = [(cluster.offers[name], cluster.held(name)) for name in snapshot.nodes.names]

    def used(held: list[Amounts], names: list[str], with_pod: bool) -> Amounts:
        counted = [name for name in names if name != GPU or GPU in asked]
        return {name: sum(one.get(name, 0) for one in ([*held, asked] if with_pod else held)) for name in counted}

    for kind, weights, fit in FITS:
        _, state = fit.pre_score(info, snapshot)
        exact = [allocation(offer, used(held, list(weights), True), weights, kind) for offer, held in nodes]
        assert in_parts(fit, state, snapshot) == exact, kind
    for names, balanced in BALANCES:
        status, state = balanced.pre_score(info, snapshot)
        assert status.is_success
        exact = []
        for offer, held in nodes:
            before, after = (evenness(offer, used(held, names, with_pod)) for with_pod in (False, True))
            exact.append(50 + (50 + after - before) // 2)
        assert in_parts(balanced, state, snapshot) == exact
    compare_filter(cluster, info, asked, nodes)
    cluster.view.remove_pod(uid)


def compare_filter(cluster: Cluster, info: Any, asked: Amounts, nodes: list[tuple[Amounts, list[Amounts]]]) -> None:
    snapshot, fit = cluster.view.snapshot(), FITS[0][2]
    _, state = fit.pre_filter(info, snapshot)
    rows = np.arange(len(nodes))
    for part in (rows, *(rows[start : start + 3] for start in range(0, len(rows), 3))):
        verdicts = fit.filter(state, snapshot, part)
        for row, number in zip(part.tolist(), verdicts.refused.tolist(), strict=True):
            offer, held = nodes[row]
            lacking = ["Too many pods"] if len(held) >= 9 else []
            for name, amount in asked.items():
                if amount > offer.get(name, 0) - sum(one.get(name, 0) for one in held):
                    lacking.append(f"Insufficient {name}")
            assert (list(verdicts.refusals[number - 1].reasons) if number else []) == lacking


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_filter_and_scores_are_exact_after_any_history(seed: int) -> None:
    cluster = Cluster(Random(seed))
    for _ in range(8):
        compare(cluster)
        for _ in range(cluster.rng.choice((0, 1, 1, 2, 5, 30))):
            cluster.step()
