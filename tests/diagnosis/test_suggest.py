"""What `explain` suggests for a pod that fits nowhere: the smallest change, and it works."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.diagnosis.dump import load_cluster, read_objects
from policyengine.diagnosis.explain import explain
from policyengine.diagnosis.suggest import suggest
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.cluster.consistency import validate_view
from tests.cluster.view_dump import dump_view
from tests.plugins import random_cluster

ZONE = "topology.kubernetes.io/zone"
Json = dict[str, Any]


def node(name: str, cpu: str = "4", memory: str = "8Gi") -> NodeBuilder:
    return make_node(name).allocatable(cpu=cpu, memory=memory, pods=10).label("kubernetes.io/hostname", name)


def suggestions(
    pod: PodBuilder, *nodes: NodeBuilder, running: tuple[PodBuilder, ...] = (), profile: Any = None
) -> list[Json]:
    cluster = {
        "nodes": [one.json() for one in nodes],
        "pods": [one.json() for one in running],
        "pending": [pod.json()],
    }
    (entry,) = explain(cluster, profile or default_profile(), suggestions=True)
    assert entry["chosen"] is None
    return list(entry.get("suggestions", ()))


def changes(found: list[Json]) -> list[str]:
    return [one["change"] for one in found]


def commands(found: list[Json]) -> list[str]:
    """The command of each suggestion's only change."""
    return [one["changes"][0].get("kubectl", "") for one in found]


def test_the_largest_request_that_fits_is_named_with_the_node() -> None:
    found = suggestions(make_pod().req(cpu="6", memory="1Gi"), node("a", cpu="4"), node("b", cpu="3500m"))
    assert found == [
        {
            "change": "request 4 cpu instead of 6",
            "changes": [{"kind": "request", "resource": "cpu", "from": "6", "to": "4"}],
            "fits": 1,
            "chosen": "a",
        }
    ]


def test_two_resources_that_are_short_are_lowered_together() -> None:
    (one,) = suggestions(make_pod().req(cpu="6", memory="16Gi"), node("a"))
    assert one["change"] == "request 4 cpu instead of 6, and request 8Gi memory instead of 16Gi"


def test_what_init_containers_ask_for_is_lowered_too() -> None:
    (one,) = suggestions(make_pod().req(cpu="1").init(cpu="9").init(cpu="8"), node("a"))
    assert one["change"] == "request 4 cpu instead of 9"


def test_a_volume_in_the_way_is_named_with_its_claim() -> None:
    claimed = suggestions(make_pod().pvc("absent", name="data"), node("a"))
    assert changes(claimed) == ["drop the volume data, claim absent"]
    disk = {"pdName": "d"}
    holds = make_pod("q").volume("d", gcePersistentDisk=disk).node("a")
    shared = suggestions(make_pod().volume("scratch", gcePersistentDisk=disk), node("a"), running=(holds,))
    assert changes(shared) == ["drop the volume scratch", "add a node like a"]


def test_a_device_that_is_not_there_is_named_by_its_claim() -> None:
    entries = [{"name": "gpu", "resourceClaimName": "absent"}]
    assert changes(suggestions(make_pod().set("spec.resourceClaims", entries), node("a"))) == [
        "drop the resource claim gpu"
    ]


def test_a_taint_is_tolerated_exactly_or_removed() -> None:
    found = suggestions(make_pod(), node("a").taint("gpu", "true"))
    assert changes(found) == ["tolerate the taint gpu=true:NoSchedule", "remove the taint gpu=true:NoSchedule from a"]
    assert commands(found)[1] == "kubectl taint node a gpu=true:NoSchedule-"


def test_a_taint_that_a_controller_sets_is_not_removed() -> None:
    found = suggestions(make_pod(), node("a").taint("node.kubernetes.io/not-ready", ""))
    assert changes(found) == ["tolerate the taint node.kubernetes.io/not-ready:NoSchedule", "add a node like a"]


def test_a_cordoned_node_is_uncordoned() -> None:
    found = suggestions(make_pod().req(cpu="2"), node("a", cpu="1").unschedulable(), node("b").unschedulable())
    assert changes(found)[0] == "uncordon b"
    assert found[0]["changes"] == [{"kind": "uncordon", "node": "b", "kubectl": "kubectl uncordon b"}]


def test_room_is_made_by_the_fewest_pods() -> None:
    running = (
        make_pod("small").req(cpu="1").node("a"),
        make_pod("other").req(cpu="1").node("a"),
        make_pod("large").req(cpu="2").node("a"),
    )
    found = suggestions(make_pod().req(cpu="2"), node("a"), running=running)
    assert changes(found) == ["free 2 cpu on a: delete or move default/large", "add a node like a"]
    assert commands(found) == ["kubectl --namespace default delete pod large", ""]


def test_a_pod_that_goes_anyway_is_waited_for() -> None:
    running = (make_pod("stays").req(cpu="2").node("a"), make_pod("goes").req(cpu="2").node("a").deleting())
    found = suggestions(make_pod().req(cpu="2"), node("a"), running=running)
    assert changes(found)[0] == "free 2 cpu on a: wait until default/goes has terminated"


def test_a_full_node_lacks_a_pod_slot() -> None:
    full = node("a").allocatable(pods=1)
    found = suggestions(make_pod(), full, running=(make_pod("one").node("a"),))
    assert changes(found) == ["free a pod slot on a: delete or move default/one", "add a node like a"]


def test_a_label_constraint_is_dropped() -> None:
    pod = make_pod().node_selector({"disk": "ssd"})
    found = suggestions(pod, node("a"))
    assert changes(found) == ["drop `disk: ssd` from nodeSelector", "label node a disk=ssd"]
    assert commands(found)[1] == "kubectl label --overwrite node a disk=ssd"
    pod = make_pod().node_affinity((ZONE, "In", ["b", "c"]))
    assert changes(suggestions(pod, node("a").label(ZONE, "a"))) == [
        f"drop `{ZONE} In b, c` from required node affinity"
    ]


def test_a_required_pod_term_is_dropped() -> None:
    found = suggestions(make_pod().pod_affinity(ZONE, {"app": "db"}), node("a").label(ZONE, "a"))
    assert changes(found) == [f"drop the required podAffinity over {ZONE}"]


def test_a_spread_constraint_is_relaxed_by_one_before_it_is_dropped() -> None:
    running = (make_pod("one").label("app", "web").node("a"),)
    pod = make_pod().label("app", "web").spread(ZONE, {"app": "web"})
    nodes = (node("a").label(ZONE, "a"), node("b", cpu="0").label(ZONE, "b"))
    found = suggestions(pod.req(cpu="1"), *nodes, running=running)
    assert changes(found) == [f"allow maxSkew 2 over {ZONE}", f"spread over {ZONE} with ScheduleAnyway"]


def test_a_host_port_is_dropped_or_freed() -> None:
    running = (make_pod("holder").host_port(80).node("a"),)
    found = suggestions(make_pod().host_port(80), node("a"), running=running)
    assert changes(found)[:2] == ["drop hostPort 80", "free host port 80 on a: delete or move default/holder"]


def test_changes_are_combined_where_one_is_not_enough() -> None:
    found = suggestions(make_pod().req(cpu="6").node_selector({"disk": "ssd"}), node("a").taint("gpu"))
    assert {change["kind"] for change in found[0]["changes"]} == {"tolerate", "drop", "request"}


def test_a_rule_of_a_policy_is_met_by_asking_for_less() -> None:
    text = """
    policy "roomy" {
      filter "headroom" {
        require node.free.memory - pod.requests.memory >= 1Gi else "too little memory left"
      }
    }
    """
    profile = compile_policy(text)
    found = suggestions(make_pod().req(memory="7680Mi"), node("a"), profile=profile)
    assert changes(found) == ["request 7Gi memory instead of 7680Mi"]


@pytest.mark.parametrize("pod", [make_pod().req(cpu="1x"), make_pod().req({"vendor.example/gpu": "1"})])
def test_where_nothing_helps_nothing_is_suggested(pod: PodBuilder) -> None:
    assert suggestions(pod, node("a")) == []


def picky(selectors: int) -> tuple[Evaluator, Any, Any]:
    """A pod that asks for labels that no node has."""
    pod = make_pod().node_selector({f"k{number}": "v" for number in range(selectors)})
    loaded = load_cluster(read_objects({"nodes": [node("a").json()], "pending": [pod.json()]}))
    return Evaluator(default_profile()), loaded.pending[0], loaded.view


def test_a_search_ends_when_it_is_told_to() -> None:
    asked: list[bool] = []

    def is_over() -> bool:
        asked.append(len(asked) >= 5)
        return asked[-1]

    assert suggest(*picky(40), is_over) == []
    assert asked.count(False) == 5, "what is left of the three rounds is not tried"


@pytest.mark.parametrize(("bound", "most"), [("TRIED", 20), ("SPECS", 20 * 2000 * len('"k1999":"v",'))])
def test_no_round_tries_more_than_it_may(bound: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def counted() -> bool:
        nonlocal tried
        tried += 1
        return False

    monkeypatch.setattr(f"policyengine.diagnosis.suggest.{bound}", most)
    assert suggest(*picky(2000), counted) == []
    assert tried <= 3 * 2 * 20


def test_a_pod_that_fits_needs_no_suggestion() -> None:
    cluster = {"nodes": [node("a").json()], "pending": [make_pod().json()]}
    (entry,) = explain(cluster, default_profile(), suggestions=True)
    assert "suggestions" not in entry


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_the_cluster_is_as_before_and_every_suggestion_names_a_node_of_it(seed: int) -> None:
    objects = random_cluster.cluster(Random(seed), nodes=6, pods=20, pending=4)
    loaded = load_cluster(read_objects(objects))
    before = dump_view(loaded.view)
    evaluator = Evaluator(default_profile())
    for pod in loaded.pending:
        for found in suggest(evaluator, pod, loaded.view):
            more = [f"{one['like']}-more-" for one in found["changes"] if one["kind"] == "node"]
            assert found["chosen"] in loaded.view.nodes.row_of or found["chosen"].startswith(tuple(more))
            assert found["fits"] >= 1
            assert found["changes"]
    validate_view(loaded.view)
    assert dump_view(loaded.view) == before
