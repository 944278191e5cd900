"""Every argument that KubeSchedulerConfiguration v1 takes for these plugins, and what its validation refuses.

Source: kube-scheduler's apis/config: types_pluginargs.go, validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.framework.plugin_entry import ArgumentError
from policyengine.plugins.registry import IN_TREE, build

Json = dict[str, Any]
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
TERM = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}


def required(*terms: Json) -> Json:
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def preferred(term: Json, weight: int = 1) -> Json:
    given = [{"weight": weight, "preference": term}]
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": given}}


def constraint(**more: Any) -> Json:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"} | more


def spreading(*constraints: Json, kind: str = "List") -> Json:
    return {"defaultingType": kind, "defaultConstraints": list(constraints)}


def scoring(kind: str = "LeastAllocated", **more: Any) -> Json:
    return {"scoringStrategy": {"type": kind} | more}


def ratio(shape: list[Json]) -> Json:
    return scoring("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("NodeResourcesFit", {"ignoredResources": ["example.com/foo"], "ignoredResourceGroups": ["example.com"]}),
        ("NodeResourcesFit", scoring(resources=[{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 100}])),
        ("NodeResourcesFit", scoring("MostAllocated")),
        ("NodeResourcesFit", ratio(SHAPE)),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory"}]}),
        ("NodeAffinity", required(TERM)),
        ("NodeAffinity", preferred(TERM, 100)),
        ("PodTopologySpread", {}),
        ("PodTopologySpread", {"defaultingType": "System"}),
        ("PodTopologySpread", spreading(constraint(), constraint(whenUnsatisfiable="DoNotSchedule"))),
        ("PodTopologySpread", spreading()),
        ("InterPodAffinity", {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 100}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}),
        ("VolumeBinding", {"shape": SHAPE}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0}),
        ("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1s"}),
        ("DynamicResources", {"filterTimeout": "1m30.5s", "bindingTimeout": "10m"}),
    ],
)
def test_is_taken(plugin: str, arguments: Json) -> None:
    assert build(plugin, arguments).name == plugin


@pytest.mark.parametrize(
    ("plugin", "arguments", "why"),
    [
        ("NodeResourcesFit", {"ignoredResources": ["not a name"]}, "ignoredResources"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["example.com/foo"]}, "`ignoredResourceGroups.0`"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["not a name"]}, "ignoredResourceGroups"),
        ("NodeResourcesFit", scoring("Fullest"), "scoringStrategy.type"),
        ("NodeResourcesFit", {"strategy": "Fullest"}, "`strategy`"),
        ("NodeResourcesFit", scoring() | {"strategy": "MostAllocated"}, "differ"),
        ("NodeResourcesFit", scoring(resources=[{"name": "cpu", "weight": 0}]), "`scoringStrategy.resources.0.weight`"),
        ("NodeResourcesFit", scoring(resources=[{"name": "cpu", "weight": 101}]), "weight"),
        ("NodeResourcesFit", scoring("RequestedToCapacityRatio"), "requestedToCapacityRatio.shape"),
        ("NodeResourcesFit", scoring(requestedToCapacityRatio={"shape": SHAPE}), "requestedToCapacityRatio"),
        ("NodeResourcesFit", ratio([]), "shape"),
        ("NodeResourcesFit", ratio([*SHAPE, {"utilization": 50, "score": 1}]), "ascend"),
        ("NodeResourcesFit", ratio([{"utilization": 101, "score": 1}]), "utilization"),
        ("NodeResourcesFit", ratio([{"utilization": 0, "score": 11}]), "score"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "cpu"}]}, "cpu.*twice"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]}, "weight"),
        ("NodeAffinity", required({"matchExpressions": [{"key": "a", "operator": "Near"}]}), "Near"),
        ("NodeAffinity", preferred({"matchExpressions": [{"key": "a", "operator": "In"}]}), "In"),
        ("NodeAffinity", {"addedAffinity": {"required": 3}}, "addedAffinity"),
        ("NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 3}}, "addedAffinity"),
        ("PodTopologySpread", spreading(constraint(), kind="System"), "List"),
        ("PodTopologySpread", {"defaultingType": "Both"}, "defaultingType"),
        ("PodTopologySpread", spreading(constraint(maxSkew=0)), "maxSkew"),
        ("PodTopologySpread", spreading(constraint(topologyKey="")), "topologyKey"),
        ("PodTopologySpread", spreading(constraint(topologyKey="not a key")), "not a key"),
        ("PodTopologySpread", spreading(constraint(whenUnsatisfiable="Never")), "whenUnsatisfiable"),
        ("PodTopologySpread", spreading({"maxSkew": 1, "topologyKey": "zone"}), "whenUnsatisfiable"),
        ("PodTopologySpread", spreading(constraint(labelSelector={})), "labelSelector"),
        ("PodTopologySpread", spreading(constraint(), constraint(maxSkew=2)), "twice"),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight"),
        ("InterPodAffinity", {"hardPodAffinityWeight": -1}, "hardPodAffinityWeight"),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        ("VolumeBinding", {"shape": []}, "shape"),
        ("VolumeBinding", {"shape": [SHAPE[1], SHAPE[0]]}, "ascend"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, "cannot both be 0"),
        ("DynamicResources", {"filterTimeout": "-1s"}, "filterTimeout"),
        ("DynamicResources", {"bindingTimeout": "500ms"}, "bindingTimeout"),
        ("DynamicResources", {"bindingTimeout": "soon"}, "bindingTimeout"),
        ("ImageLocality", {"anything": 1}, "anything"),
    ],
)
def test_is_refused(plugin: str, arguments: Json, why: str) -> None:
    with pytest.raises(ArgumentError, match=f"(?s)`{plugin}`.*{why}"):
        build(plugin, arguments)


@pytest.mark.parametrize("plugin", sorted(IN_TREE))
def test_an_unknown_argument_is_refused_by_every_plugin(plugin: str) -> None:
    with pytest.raises(ArgumentError, match="whatever"):
        build(plugin, {"whatever": 1})
