"""Malformed pods through the whole profile: refused with a reason and an event, and the others go on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from policyengine.diagnosis.explain import explain
from policyengine.plugins.registry import default_profile
from tests.builders import PodBuilder, make_node, make_pod
from tests.scheduler.driver import Driver, binds, conditions, notes

ZONE = "topology.kubernetes.io/zone"
NEAR = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}
UNRESOLVABLE = "UnschedulableAndUnresolvable"


def required(side: str, selector: dict[str, Any], key: str = ZONE, **more: Any) -> PodBuilder:
    """A required term as on the wire."""
    term = {"topologyKey": key, "labelSelector": selector} | more
    return make_pod("bad").set(f"spec.affinity.{side}.requiredDuringSchedulingIgnoredDuringExecution", [term])


def preferred(side: str, selector: dict[str, Any]) -> PodBuilder:
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": selector}}
    return make_pod("bad").set(f"spec.affinity.{side}.preferredDuringSchedulingIgnoredDuringExecution", [term])


def spread(when: str, selector: dict[str, Any]) -> PodBuilder:
    return make_pod("bad").spread(ZONE, {}, when_unsatisfiable=when, labelSelector=selector)


BY_SPEC: dict[str, tuple[PodBuilder, str]] = {
    "a cpu request": (make_pod("bad").req(cpu="1x"), "container `c` requests: `cpu`: `1x` is not a quantity"),
    "a negative request": (make_pod("bad").req(cpu="-1"), "`cpu`: `-1` is negative"),
    "an init container's request": (make_pod("bad").init(memory="lots"), "`memory`: `lots` is not a quantity"),
    "an overhead": (make_pod("bad").overhead(cpu="?"), "overhead: `cpu`: `?` is not a quantity"),
    "more than can be counted": (make_pod("bad").req(cpu="9E"), "beyond what can be counted"),
}
"""Refused before any plugin is asked; the API server would not have let them in."""

AS_A_WHOLE: dict[str, tuple[PodBuilder, str, str]] = {
    "an operator of an affinity selector": (
        required("podAffinity", NEAR),
        "InterPodAffinity",
        f"pod affinity term on `{ZONE}`: `app`: `Near` is not an operator",
    ),
    "Gt in a namespace selector": (
        required(
            "podAffinity",
            {},
            namespaceSelector={"matchExpressions": [{"key": "team", "operator": "Gt", "values": ["1"]}]},
        ),
        "InterPodAffinity",
        "`team`: `Gt` is not an operator",
    ),
    "a preferred term": (preferred("podAntiAffinity", NEAR), "InterPodAffinity", "`Near` is not an operator"),
    "a hard spread's selector": (spread("DoNotSchedule", NEAR), "PodTopologySpread", "`Near` is not an operator"),
    "a soft spread's selector": (spread("ScheduleAnyway", NEAR), "PodTopologySpread", "`Near` is not an operator"),
    "Gt with a word, preferred": (
        make_pod("bad").preferred_node_affinity(5, ("rank", "Gt", ["x"])),
        "NodeAffinity",
        "preferred node affinity: `rank`: `Gt` needs exactly one integer",
    ),
    "an absent claim": (
        make_pod("bad").pvc("absent"),
        "VolumeRestrictions",
        'persistentvolumeclaim "absent" not found',
    ),
    "a claim of an absent class": (
        make_pod("bad").pvc("classless"),
        "VolumeBinding",
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "a claim to an absent volume": (
        make_pod("bad").pvc("volumeless"),
        "VolumeZone",
        'persistentvolume "gone" not found',
    ),
}
"""Refused by PreFilter."""

MISSED = "node(s) didn't match Pod's node affinity/selector"
EVERYWHERE: dict[str, tuple[PodBuilder, str, str]] = {
    "Gt with a word": (make_pod("bad").node_affinity(("rank", "Gt", ["x"])), "NodeAffinity", MISSED),
    "Lt with two values": (make_pod("bad").node_affinity(("rank", "Lt", ["1", "2"])), "NodeAffinity", MISSED),
    "an operator for nodes": (make_pod("bad").node_affinity(("rank", "Near", ["1"])), "NodeAffinity", MISSED),
    "an operator for fields": (
        make_pod("bad").node_affinity(("metadata.name", "Exists", []), fields=True),
        "NodeAffinity",
        MISSED,
    ),
    "a nodeSelector key": (make_pod("bad").node_selector({"a b": "c"}), "NodeAffinity", MISSED),
    "a topology key no node has": (
        required("podAffinity", {"matchLabels": {"app": "web"}}, key="rack"),
        "InterPodAffinity",
        "node(s) didn't match pod affinity rules",
    ),
    "an empty topology key": (
        required("podAffinity", {"matchLabels": {"app": "web"}}, key=""),
        "InterPodAffinity",
        "node(s) didn't match pod affinity rules",
    ),
    "a spread over a key no node has": (
        make_pod("bad").spread("rack", {"app": "web"}),
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    "a negative maxSkew": (
        make_pod("bad").spread(ZONE, {"app": "web"}, max_skew=-1),
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints",
    ),
}
"""Refused on every node, as kube-scheduler refuses them."""

HARMLESS: dict[str, PodBuilder] = {
    "a negative minDomains": make_pod("bad").spread(ZONE, {"app": "web"}, minDomains=-3),
    "a toleration's operator": make_pod("bad").toleration("gpu", "Gt", "x"),
    "a negative host port": make_pod("bad").host_port(-5),
    "a nomination to a node that is not there": make_pod("bad").nominated("absent"),
}
"""Read as kube-scheduler reads them: they ask for nothing."""


def answers(bad: PodBuilder) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of the bad pod, and of a good one beside it."""
    nodes = [make_node(name).allocatable(cpu="4", memory="8Gi", pods=10) for name in ("a", "b")]
    nodes = [
        node.label(ZONE, name).label("rank", rank) for node, name, rank in zip(nodes, "ab", ("1", "x"), strict=True)
    ]
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "absent"}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    cluster = {
        "nodes": [node.json() for node in nodes],
        "pending": [bad.json(), make_pod("good").req(cpu="1").json()],
        "persistentVolumeClaims": [
            {"metadata": {"name": "classless", "namespace": "default"}, "spec": claim},
            {
                "metadata": {"name": "volumeless", "namespace": "default", "annotations": bound},
                "spec": claim | {"volumeName": "gone"},
                "status": {"phase": "Bound"},
            },
        ],
    }
    first, second = explain(cluster, default_profile(), suggestions=True)
    assert second["chosen"] in ("a", "b")
    return first, second


@pytest.mark.parametrize("case", BY_SPEC)
def test_a_malformed_quantity_refuses_the_pod(case: str) -> None:
    bad, reason = BY_SPEC[case]
    refused = answers(bad)[0]["preFilter"]
    assert refused["code"] == UNRESOLVABLE
    assert reason in refused["reasons"][0]


@pytest.mark.parametrize("case", AS_A_WHOLE)
def test_a_malformed_part_refuses_the_pod_by_the_plugin_that_reads_it(case: str) -> None:
    bad, plugin, reason = AS_A_WHOLE[case]
    refused = answers(bad)[0]["preFilter"]
    assert (refused["plugin"], refused["code"]) == (plugin, UNRESOLVABLE)
    assert reason in refused["reasons"][0]


@pytest.mark.parametrize("case", EVERYWHERE)
def test_what_can_match_no_node_is_refused_on_each(case: str) -> None:
    bad, plugin, reason = EVERYWHERE[case]
    rejected = answers(bad)[0]["rejected"]
    assert {status["plugin"] for status in rejected.values()} == {plugin}
    assert [status["reasons"] for status in rejected.values()] == [[reason]] * 2


@pytest.mark.parametrize("case", HARMLESS)
def test_what_asks_for_nothing_refuses_nothing(case: str) -> None:
    assert answers(HARMLESS[case])[0]["chosen"] in ("a", "b")


@pytest.mark.parametrize("case", [*BY_SPEC, "a preferred term", "an absent claim", "Gt with a word"])
def test_the_scheduler_tells_the_pod_and_binds_the_next(case: str) -> None:
    bad = copy.deepcopy((BY_SPEC | AS_A_WHOLE | EVERYWHERE)[case][0])
    driver = Driver().showing(make_node("a").capacity(cpu="4", memory="8Gi", pods="10").label(ZONE, "a"))
    actions = driver.see(bad, make_pod("good").req(cpu="1"))
    actions += driver.cycle()
    assert binds(actions) == {"good": "a"}
    (note,) = [note for reason, note in notes(actions) if reason == "FailedScheduling"]
    assert conditions(actions) == [("Unschedulable", note)]
    if case in BY_SPEC:
        assert BY_SPEC[case][1] in note
        assert driver.places("bad") == ["gated"]
    else:
        assert note.startswith("0/1 nodes are available: ")
        assert driver.places("bad") == ["unschedulable"]
