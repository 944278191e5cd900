"""The best nodes, kept while totals change, and answers to identical pods equal those worked out afresh."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.journal import stable_hash
from policyengine.cluster.view import ClusterView
from policyengine.framework.best_nodes import BestNodes, Ring
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import default_profile
from tests.builders import make_node, make_pod


def naive(name_hash: np.ndarray, rows: np.ndarray, total: np.ndarray, uid: str) -> int:
    best = total[rows].max()
    tied = [int(row) for row in rows if total[row] == best]
    return min(tied, key=lambda row: ((int(name_hash[row]) - stable_hash(uid)) % 2**64, row))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_best_nodes_that_follow_single_totals_are_those_of_all_totals(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(1, 40)
    name_hash = np.array([stable_hash(f"node-{number}") for number in range(n)], dtype=np.uint64)
    total = np.array([rng.randint(0, 2) for _ in range(n)], dtype=np.int64)
    ring = Ring(name_hash)
    best = BestNodes(ring, total)
    for step in range(12):
        wanted = naive(name_hash, np.arange(n), total, f"pod-{step}")
        assert best.next(f"pod-{step}") == wanted
        assert ring.next_best(total, f"pod-{step}") == wanted
        highest = total.max()
        for row in rng.sample(range(n), min(n, rng.randint(1, 3))):
            total[row] = rng.randint(0, 3)
            best.put(row, total.item(row))
        if not best.are_known:
            assert total.max() < highest
            return


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_run_of_identical_pods_goes_where_fresh_answers_would_put_them(seed: int) -> None:
    rng = Random(seed)
    view = ClusterView()
    for number in range(48):
        zone = rng.choice("ab")
        node = make_node(f"node-{number}").allocatable(cpu="4", memory="8Gi", pods=rng.choice((2, 110)))
        view.add_or_update_node(node.label("topology.kubernetes.io/zone", zone).build())
    evaluator = Evaluator(default_profile())
    placed: list[str] = []
    earlier = None
    for number in range(60):
        uid = f"pod-{number}"
        pod = make_pod(uid).req(cpu="500m", memory="500Mi")
        if seed % 2:
            pod.node_affinity(("topology.kubernetes.io/zone", "In", ["a"]))
        info = view.add_or_update_pod(pod.build()).new
        assert info is not None
        snapshot = view.snapshot()
        node_scores = evaluator.score(info, snapshot, evaluator.filter(info, snapshot))
        if len(node_scores.rows) == 0:
            return
        anew = Evaluator(default_profile())
        fresh = anew.score(info, snapshot, anew.filter(info, snapshot))
        assert node_scores.best(uid) == fresh.best(uid)
        assert node_scores.total.tolist() == fresh.total.tolist()
        if earlier is not None:
            kept, place, total = earlier
            assert (kept.best("again"), kept.total.tolist()) == (place, total)
        earlier = node_scores, node_scores.best("again"), node_scores.total.tolist()
        view.assume(uid, view.nodes.names[node_scores.best(uid)])
        placed.append(uid)
        if rng.random() < 0.2:
            view.remove_pod(placed.pop(rng.randrange(len(placed))))
        if rng.random() < 0.05:
            view.remove_node(view.nodes.names[rng.randrange(view.nodes.n)])
            earlier = None  # rows have other nodes now
