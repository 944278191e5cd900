"""Pods placed one after another by an evaluator that lives as long, each held against one that has just begun."""

from __future__ import annotations

from random import Random

from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile


class Placing:
    """A cluster as a view, and what decides in it."""

    def __init__(self, rng: Random, profile: Profile) -> None:
        self.rng = rng
        self.view = ClusterView()
        self.profile = profile
        self.evaluator = Evaluator(profile)
        self.version = 0
        self.decided = 0
        """Pods placed."""

    def meta(self, name: str, **more: object) -> dict[str, object]:
        self.version += 1
        return {"name": name, "uid": name, "resourceVersion": str(self.version), **more}

    def decide(self, name: str) -> None:
        """Place a pod, and hold the place, the feasible nodes and the totals against a fresh decision."""
        pod, snapshot = self.view.pods[name], self.view.snapshot()
        found = self.evaluator.select_node(pod, snapshot)
        fresh = Evaluator(self.profile)
        diagnosis = fresh.filter(pod, snapshot)
        scores = fresh.score(pod, snapshot, diagnosis)
        assert found == (scores.best(pod.uid) if len(diagnosis.feasible) else None)
        if found is not None:
            kept = self.evaluator._total(pod)
            assert kept.feasible.rows.tolist() == diagnosis.feasible.tolist()
            if len(diagnosis.feasible) > 1:
                assert kept.values[diagnosis.feasible].tolist() == scores.total.tolist()
            self.view.assume(pod.uid, snapshot.nodes.names[found])
            self.decided += 1
