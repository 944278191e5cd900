"""Pods placed one after another by an evaluator that lives as long, each held against one that has just begun."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

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
        self.decided: Counter[str] = Counter()
        """Pods placed `in a run`, as one of a streak or of kin, and `beside` one."""

    def meta(self, name: str, **more: object) -> dict[str, object]:
        self.version += 1
        return {"name": name, "uid": name, "resourceVersion": str(self.version), **more}

    def decide(self, name: str) -> None:
        """Place a pod, and hold the place, the feasible nodes and the totals against a fresh decision."""
        pod, snapshot = self.view.pods[name], self.view.snapshot()
        found = self.evaluator.choose_again(pod, snapshot)
        where = "beside" if found is None else "in a run"
        diagnosis = self.evaluator.filter(pod, snapshot) if found is None else None
        if diagnosis is not None and len(diagnosis.feasible):
            found = self.evaluator.choose(pod, snapshot, diagnosis)
        # What follows the node table row by row is as old as the evaluator: a fresh one must not rest on it.
        snapshot.nodes.forget_followers()
        fresh = Evaluator(self.profile)
        anew = fresh.filter(pod, snapshot)
        if diagnosis is not None:
            assert diagnosis.feasible.tolist() == anew.feasible.tolist()
        elif (streak := self.evaluator._runs._streak) is not None:
            feasible = np.flatnonzero(streak._feasible)
            assert feasible.tolist() == anew.feasible.tolist()
            assert streak._total[feasible].tolist() == fresh.score(pod, snapshot, anew).total.tolist()
        assert found == (fresh.score(pod, snapshot, anew).best(pod.uid) if len(anew.feasible) else None)
        if found is not None:
            self.decided[where] += 1
            self.view.assume(pod.uid, snapshot.nodes.names[found])
