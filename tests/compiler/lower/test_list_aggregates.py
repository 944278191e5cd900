"""Aggregates over nodes and pods: cached columns answer what fresh ones do, after any history."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.diagnosis.explain import explain_pod
from policyengine.framework.evaluator import Evaluator
from policyengine.policy_compiler import compile_policy
from tests.builders import make_node, make_pod
from tests.cluster.consistency import validate_view
from tests.framework import test_incremental as incremental

# --- cached columns --------------------------------------------------------------------------------------

ZONE = "topology.kubernetes.io/zone"
POLICY = f"""
  base none
  let crowd = node.pods.filter(p, p.labels[?"app"].orValue("") == pod.labels[?"app"].orValue(""))
  let there = node.domain("{ZONE}")
  filter "own" {{
    require crowd.size() < 3 else "has {{crowd.size()}} of its kind, {{node.pods.map(p, p.name).size()}} in all"
    require node.pods.all(p, p.priority <= pod.priority + 5) || node.nominated.size() > 0
  }}
  filter "zone" {{
    require node.domain("{ZONE}").pods.filter(p, p.namespace == pod.namespace).size() < 9
      else "{{there.pods.size()}} pods"
    require node.domain("{ZONE}").nodes.exists(n, n.ready && n.pods.size() < 6) on error true
  }}
  filter "cluster" when pods.size() < 60 {{
    require pods.filter(p, p.labels[?"app"].orValue("") == pod.labels[?"app"].orValue("")).size() < 12
    require nodes.filter(n, n.pods.exists(p, p.namespace == pod.namespace)).size() < nodes.size()
      else "{{nodes.size()}}"
  }}
  score "mean" weight 2 normalize minmax = node.pods.map(p, p.requests.cpu / 3m).avg()
  score "spread" weight 3 normalize max = node.domain("{ZONE}").pods.map(p, ratio(p.requests.memory, 7Gi)).stddev()
  score "all" weight 1 = clamp(node.podCount - nodes.map(n, n.podCount).max().orValue(0), 0, 100)
"""


class Cluster(incremental.World):
    """A cluster with a history, evaluated by rules about lists."""

    def __init__(self, rng: Random, columns: int) -> None:
        super().__init__(rng, columns)
        self.profile = compile_policy(f'policy "p" {{ {POLICY} }}')
        self.evaluator = Evaluator(self.profile, columns)

    def step(self) -> None:
        super().step()
        waiting = [uid for uid in self.pending() if uid not in self.assumed]
        if waiting and self.rng.random() < 0.2:
            self.view.nominate(self.rng.choice(waiting), self.rng.choice([*self.nodes, ""]))

    def fresh(self) -> ClusterView:
        view = super().fresh()
        for uid, info in self.view.pods.items():
            if uid not in self.assumed and not info.node_name:
                view.nominate(uid, info.nominated_node_name)
        return view

    def check(self) -> None:
        fresh = self.fresh()
        validate_view(self.view)
        for uid in self.pending():
            if uid not in self.assumed:
                cached = explain_pod(self.evaluator, self.view.pods[uid], self.view.snapshot())
                anew = explain_pod(Evaluator(self.profile), fresh.pods[uid], fresh.snapshot())
                assert cached == anew


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), columns=st.sampled_from((2, 128)))
def test_cached_columns_about_lists_equal_fresh_ones_over_any_history(seed: int, columns: int) -> None:
    cluster = Cluster(Random(seed), columns)
    for _ in range(incremental.STEPS):
        cluster.step()
        if cluster.rng.random() < 0.6:
            cluster.check()
    cluster.check()


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32))
def test_a_hypothesis_is_judged_as_if_it_were_so_and_leaves_no_trace(seed: int) -> None:
    cluster = Cluster(Random(seed), 128)
    cluster.check()
    gone = [uid for uid, pod in cluster.pods.items() if pod["spec"].get("nodeName")][:4]
    without = cluster.fresh()
    for uid in gone:
        without.remove_pod(uid)
    with cluster.view.hypothetically(remove=gone) as snapshot:
        for uid in cluster.pending():
            evaluated = explain_pod(cluster.evaluator, cluster.view.pods[uid], snapshot)
            assert evaluated == explain_pod(Evaluator(cluster.profile), without.pods[uid], without.snapshot())
    cluster.check()


def view_of(*things: Any) -> ClusterView:
    view = ClusterView()
    for thing in things:
        built = thing.build()
        (view.add_or_update_node if isinstance(built, Node) else view.add_or_update_pod)(built)
    return view


def the_pod(view: ClusterView, name: str = "p") -> PodInfo:
    found = view.find_pod("default", name)
    assert found is not None
    return found


def verdicts(members: str, view: ClusterView) -> dict[str, str]:
    """Node -> "" where the pod p fits, else the code of the refusal."""
    profile = compile_policy(f'policy "t" {{ base none\n{members}\n}}')
    diagnosis = Evaluator(profile).filter(the_pod(view), view.snapshot())
    rows = view.nodes.row_of.items()
    return {
        name: "" if row in diagnosis.feasible.tolist() else diagnosis.refusal(row).code.wire_name for name, row in rows
    }


def test_the_pod_being_placed_is_not_among_those_nominated() -> None:
    view = view_of(make_node("a"), make_pod("p"), make_pod("q"))
    view.nominate(the_pod(view).uid, "a")
    members = 'filter "f" { require node.nominated.size() == 0 }'
    assert verdicts(members, view) == {"a": ""}
    view.nominate(the_pod(view, "q").uid, "a")
    assert verdicts(members, view) == {"a": "Unschedulable"}


def test_a_pod_that_ended_within_the_hour_is_remembered_for_its_node() -> None:
    view = view_of(make_node("a"), make_node("b"), make_pod("p"))
    view.now = 1_800_000_000.0
    ended = make_pod("job").node("a").owner("Job", "j").phase("Failed")
    view.add_or_update_pod(ended.build())
    members = (
        'filter "f" { require !node.finished.exists(f, f.failed && f.owner.?name.orValue("") == "j" '
        "&& now - f.finishedAt < 10min) }"
    )
    assert verdicts(members, view) == {"a": "Unschedulable", "b": ""}
    view.now += 700
    assert verdicts(members, view) == {"a": "", "b": ""}
    assert verdicts('filter "f" { require node.finished.size() == 0 }', view)["a"] == "Unschedulable"
    view.now += 3000
    assert verdicts('filter "f" { require node.finished.size() == 0 }', view)["a"] == ""
