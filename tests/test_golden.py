"""Every decision in ../shared/golden, taken by kube-scheduler 1.36.2, against the default profile.

`pytest -s tests/test_golden.py` prints the tables; a failure prints the first differences.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from policyengine.diagnosis.explain import explain
from policyengine.plugins.registry import default_profile
from tests.golden_table import Comparisons
from tests.shared_facts import shared

CATEGORIES = ("resources", "taints", "nodeaffinity", "ports", "images", "spread", "podaffinity", "volumes", "mixed")


def _clusters(category: str) -> Iterator[dict[str, Any]]:
    with gzip.open(shared(f"golden/{category}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_decision_agrees_with_kube_scheduler(category: str) -> None:
    counts, profile = Comparisons(), default_profile()
    for cluster in _clusters(category):
        answers = explain(cluster, profile)
        counts.compare(f"{category} {cluster['seed']}", cluster, answers)
        for answer in answers:
            best = max(answer["total"].values(), default=None)
            assert (answer["chosen"] is None) == (best is None)
            assert answer["total"].get(answer["chosen"]) == best, "the chosen node has the best total"
    print(f"\n{category}: {counts.decisions} decisions\n{counts.table()}")
    assert counts.decisions == 300
    assert sum(counts.agree.values()) > counts.decisions
    assert not counts.differ, "\n" + counts.report()
    assert not counts.unbuilt
