"""The formulas of the policies, worked out once more by their definitions.

Nothing here knows how the policies go about it: the objective of pigeon is taken of a whole cluster in which the pod
stands on the node, where the policy brings moments up to date.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from policyengine.commands.policies import load_profiles
from policyengine.diagnosis.explain import explain
from policyengine.framework.profile import Profile

FOLDER = Path(__file__).resolve().parents[2] / "policies"
KEYS = ("cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage")
SEEDS = range(3)
Amounts = NDArray[np.float64]
Measure = Callable[[Amounts, Amounts], float]


@cache
def profile_of(name: str, params: tuple[tuple[str, str], ...]) -> Profile:
    profiles = load_profiles([FOLDER / f"{name}.policy", FOLDER / "lib"], dict(params))
    return next(one for one in profiles if one.name == name)


def evaluated(name: str, nodes: list[Any], pods: list[Any], **params: str) -> dict[str, Any]:
    """What the policy says of the one pod of `pods` that waits."""
    (entry,) = explain({"nodes": nodes, "pods": pods}, profile_of(name, tuple(params.items())))
    return entry


def node(name: str, size: dict[str, str], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    status = {"allocatable": size, "capacity": size, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": {"name": name, "annotations": annotations or {}}, "spec": {}, "status": status}


def pod(name: str, asks: dict[str, str], on: str = "") -> dict[str, Any]:
    container = {"name": "c", "image": "app", "resources": {"requests": asks}}
    spec = {"containers": [container], **({"nodeName": on} if on else {})}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


# Safe: a node's statistics, cpu in millicores and memory in bytes.

CAPACITY = {"cpu": 8000.0, "memory": float(16 << 30)}
ASKED = {"cpu": 500.0, "memory": float(1 << 30)}


def statistics(draw: Generator) -> dict[str, str]:
    found = {}
    for resource, capacity in CAPACITY.items():
        if draw.random() < 0.85:
            found[f"mean-free-{resource}"] = str(int(draw.uniform(0.1, 1.0) * capacity))
            if draw.random() < 0.9:
                found[f"std-free-{resource}"] = str(int(draw.uniform(0.0, 0.4) * capacity))
            if draw.random() < 0.5:
                found[f"forcasted-free-{resource}"] = str(int(draw.uniform(0.1, 1.0) * capacity))
    return found


def moments(said: dict[str, str], resource: str) -> tuple[float, float] | None:
    """Mean and deviation of the utilisation with the pod there; None without statistics."""
    if f"mean-free-{resource}" not in said:
        return None
    free = float(said[f"mean-free-{resource}"])
    if f"forcasted-free-{resource}" in said:
        free = 0.8 * free + 0.2 * float(said[f"forcasted-free-{resource}"])
    capacity = CAPACITY[resource]
    mu = (max(capacity - free, 0.0) + ASKED[resource]) / capacity
    return min(mu, 1.0), min(float(said.get(f"std-free-{resource}", "0")) / capacity, 1.0)


def risk(mu: float, sigma: float) -> float:
    if sigma == 0:
        return float(mu > 0.9)
    variance = sigma**2
    if variance >= mu * (1 - mu):
        return 1.0
    size = mu * (1 - mu) / variance - 1
    return beta_tail(mu * size, (1 - mu) * size)


def beta_tail(a: float, b: float) -> float:
    """The share of a beta distribution above 0.9: a hypergeometric series of positive terms (DLMF 8.17.8)."""
    term = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(0.9) + b * math.log(0.1)) / b
    terms = [term]
    while terms[-1] > 1e-18 * terms[0] or len(terms) < a + b:
        term *= 0.1 * (a + b + len(terms) - 1) / (b + len(terms))
        terms.append(term)
    return math.fsum(terms)


def on_measured_nodes(name: str, seed: int) -> tuple[list[dict[str, str]], dict[str, Any]]:
    draw = default_rng(seed)
    said = [statistics(draw) for _ in range(25)]
    size = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    nodes = [node(f"n{index}", size, one) for index, one in enumerate(said)]
    return said, evaluated(name, nodes, [pod("p", {"cpu": "500m", "memory": "1Gi"})])


def known(said: dict[str, str]) -> list[tuple[float, float]]:
    return [found for resource in CAPACITY if (found := moments(said, resource)) is not None]


@pytest.mark.parametrize("seed", SEEDS)
def test_risk_is_the_tail_of_the_beta_distribution_with_the_moments_of_the_utilisation(seed: int) -> None:
    said, entry = on_measured_nodes("safe-overload", seed)
    for index, one in enumerate(said):
        worst = max((risk(*moments) for moments in known(one)), default=None)
        refused = f"n{index}" in entry["rejected"]
        assert refused == (worst is not None and worst > 0.3)
        if not refused:
            expected = 0.0 if worst is None else 100 * (1 - math.sqrt(worst / 0.3))
            # A risk near 0 is a difference of two numbers near 1: its root is good to six digits.
            assert expected - 1 < entry["scores"][f"n{index}"]["safety"] / 5 < expected + 1e-4


@pytest.mark.parametrize("seed", SEEDS)
def test_balance_is_the_mean_and_the_root_of_the_deviation(seed: int) -> None:
    said, entry = on_measured_nodes("safe-balance", seed)
    for index, one in enumerate(said):
        scores = [100 * (1 - (mu + math.sqrt(sigma)) / 2) for mu, sigma in known(one)]
        assert entry["scores"][f"n{index}"]["balance"] == 5 * int(min(scores, default=0.0) + 1e-9)


# Pigeon: nodes[n, k] is what a node has of KEYS, asks[p, k] what a pod asks for, on[p] the node it stands on.


def load(draw: Generator) -> tuple[Amounts, Amounts, NDArray[np.int64]]:
    nodes = np.stack(
        [draw.choice(options, 12) for options in ([4, 8, 16], [8, 16, 64], [50, 110], [0, 4], [100, 200])], 1
    )
    asks = np.stack(
        [draw.choice(options, 30) for options in ([0, 0.1, 0.5, 2], [0, 0.5, 1, 4], [1], [0, 0, 1], [0, 1, 10])], 1
    )
    on = draw.integers(0, 12, 30)
    asks[nodes[on, 3] == 0, 3] = 0
    return nodes.astype(float), asks.astype(float), on


def asked_for(asks: Amounts) -> dict[str, str]:
    cpu, memory, _, gpu, storage = asks.tolist()
    return {
        "cpu": f"{round(cpu * 1000)}m",
        "memory": f"{round(memory * 1024)}Mi",
        "nvidia.com/gpu": str(round(gpu)),
        "ephemeral-storage": f"{round(storage)}Gi",
    }


def had(size: Amounts) -> dict[str, str]:
    units = ("", "Gi", "", "", "Gi")
    return {key: f"{round(amount)}{unit}" for key, amount, unit in zip(KEYS, size.tolist(), units, strict=True)}


def shares(nodes: Amounts, asks: Amounts, on: NDArray[np.int64]) -> Amounts:
    taken = np.zeros_like(nodes)
    np.add.at(taken, on, asks)
    return np.minimum(np.divide(taken, nodes, out=np.zeros_like(nodes), where=nodes > 0), 1.0)


def variation(rows: Amounts) -> float:
    """The coefficient of variation of Albert and Zhang, of the columns of `rows`."""
    mu = rows.mean(axis=0)
    sigma = np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
    return math.sqrt(max(mu @ sigma @ mu, 0.0)) / float(mu @ mu)


def check_pigeon(seed: int, measure: Measure, **params: str) -> None:
    """The policy's scores are `measure(shares, requests / average node)` of the cluster with the pod on each node: the
    requests of the pods that were placed, in parts of an average node that has the resource; none counts as 10m and
    16Mi."""
    nodes, asks, on = load(default_rng(seed))
    placed = [pod(f"p{index}", asked_for(one), f"n{on[index]}") for index, one in enumerate(asks[1:], 1)]
    found = evaluated(
        "pigeon",
        [node(f"n{index}", had(one)) for index, one in enumerate(nodes)],
        [pod("p0", asked_for(asks[0])), *placed],
        **params,
    )
    counted = np.where(asks == 0, [0.01, 16 / 1024, 1, 0, 0], asks)
    sizes = counted[1:] / np.array([column[column > 0].mean() for column in nodes.T])
    asks[0] = counted[0]
    raw = {}
    for index in range(len(nodes)):
        on[0] = index
        raw[f"n{index}"] = measure(shares(nodes, asks, on), sizes)
    feasible = {name: raw[name] for name in found["scores"]}
    assert len(feasible) > 2
    low, high = min(feasible.values()), max(feasible.values())
    for name, value in feasible.items():
        expected = 100 - 100 * (value - low) / (high - low) if high - low > 1e-9 else 100
        assert found["scores"][name]["objective"] / 10 == pytest.approx(expected, abs=1.001), name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("resource", range(5), ids=KEYS)
def test_load_balance_is_the_deviation_of_the_shares_and_consolidate_its_share_of_the_mean(
    seed: int, resource: int
) -> None:
    """A node that has none of the resource is full of it."""
    name = ("cpu", "memory", "pods", "gpu", "storage")[resource]
    lacking = load(default_rng(seed))[0][:, resource] == 0

    def of_prime(shares: Amounts) -> Amounts:
        return np.where(lacking, 1.0, shares[:, resource])

    check_pigeon(seed, lambda shares, _: float(of_prime(shares).std()), objective="LOAD_BALANCE", resource=name)

    def concentration(shares: Amounts, sizes: Amounts) -> float:
        return -float(of_prime(shares).std() / of_prime(shares).mean())

    check_pigeon(seed, concentration, objective="CONSOLIDATE", resource=name)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", range(1, 6))
def test_adaptive_bin_packing_is_how_far_the_spread_of_nodes_is_from_that_of_pods(seed: int, count: int) -> None:
    def distance(shares: Amounts, sizes: Amounts) -> float:
        return abs(variation(shares[:, :count]) - variation(sizes[:, :count]))

    check_pigeon(seed, distance, resources=str(count))
