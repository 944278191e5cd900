"""One policy inside the scheduler and behind kube-scheduler: the same nodes, and the same order up to the grain.

The golden clusters are those of kube-scheduler; embedded is `explain` with the whole policy, behind kube-scheduler is
the in-tree profile's feasible nodes, given to the extender's filter, and its scores.
"""

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from policyengine.diagnosis.explain import explain
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.server.extender.recorded import Known, ask, verbs
from tests.shared_facts import shared

CLUSTERS = 25
POLICIES = {
    "room": """policy "room" {
      base filters
      filter "spare" { require node.free.cpu - pod.requests.cpu >= 500m else "has {node.free.cpu}" }
      score "pack" weight 3 = 100 * ratio(node.used.cpu + pod.requests.cpu, node.allocatable.cpu)
      score "memory" weight 2 normalize max = double(node.free.memory)
    }""",
    "fixed": """policy "fixed" {
      base filters
      filter "zoned" when pod.priority >= 0 { require "topology.kubernetes.io/zone" in node.labels }
      score "fewest" weight 4 normalize minmax reverse = node.podCount
      score "big" weight 1 when pod.requests.cpu > 100m normalize max = double(node.allocatable.cpu)
    }""",
}


def clusters(category: str) -> Iterator[dict[str, Any]]:
    with gzip.open(shared(f"golden/{category}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from islice(map(json.loads, lines), CLUSTERS)


def pending(cluster: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}": pod for pod in cluster["pending"]
    }


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("category", ["resources", "taints", "nodeaffinity", "mixed"])
async def test_behind_kube_scheduler_a_policy_means_what_it_means_inside(category: str, policy: str) -> None:
    profile = compile_policy(POLICIES[policy])
    compared = 0
    for cluster in clusters(category):
        answering = verbs(Known(cluster["nodes"], cluster["pods"]), POLICIES[policy])
        pods = pending(cluster)
        inside = {entry["pod"]: entry for entry in explain(cluster, profile)}
        for base in explain(cluster, default_profile()):
            left = sorted(base["total"])
            totals = inside[base["pod"]]["total"]
            filtered = await ask(answering, "filter", {"Pod": pods[base["pod"]], "NodeNames": left})
            assert filtered["NodeNames"] == sorted(totals)
            body = {"Pod": pods[base["pod"]], "NodeNames": filtered["NodeNames"]}
            scores = {entry["Host"]: entry["Score"] for entry in await ask(answering, "prioritize", body)}
            for better in scores:
                for worse in scores:
                    if scores[better] > scores[worse]:
                        assert totals[better] > totals[worse]
            compared += len(scores)
    assert compared > 100
