"""The scheduler `Policy` API (kind Policy, v1), removed in Kubernetes 1.23: predicates, priorities, extenders.

The names and what they became are those of v1.22 (pkg/scheduler/framework/plugins/legacy_registry.go). A list that is
absent means the defaults, at the weights that they had; one that is there, empty or not, means what it names, beside
the predicates that no policy could switch off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.conversion.older_versions import LIGHT
from policyengine.compiler.conversion.others import label_filter, label_score
from policyengine.compiler.conversion.reading import checked, passed_over
from policyengine.compiler.conversion.wanted import WantedPlugin, WantedProfile

_PREDICATES: Final[dict[str, tuple[str, ...]]] = {
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "PodFitsResources": ("NodeResourcesFit",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "HostName": ("NodeName",),
    "MatchNodeSelector": ("NodeAffinity",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
}
_MANDATORY: Final = ("TaintToleration", "NodeUnschedulable")
_SINCE: Final = ("DynamicResources", "NodeDeclaredFeatures")
"""Filters that came after the Policy API: they have nothing to say of pods that do not ask for what they check."""
_PRIORITIES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "LeastRequestedPriority": ("NodeResourcesFit", {}),
    "MostRequestedPriority": ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}}),
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation", {}),
    "InterPodAffinityPriority": ("InterPodAffinity", {}),
    "NodeAffinityPriority": ("NodeAffinity", {}),
    "TaintTolerationPriority": ("TaintToleration", {}),
    "ImageLocalityPriority": ("ImageLocality", {}),
    "EvenPodsSpreadPriority": ("PodTopologySpread", {}),
    "SelectorSpreadPriority": ("PodTopologySpread", {}),
    "ServiceSpreadingPriority": ("PodTopologySpread", {}),
}
_NOTHING: Final = frozenset({"EqualPriority"})


Scores = dict[str, tuple[int, dict[str, Any]]]
"""{plugin: (weight, arguments)}"""


def read_policy(value: object, registry: PluginRegistry) -> WantedProfile:
    """The one profile of a Policy. Raises `ConversionError`."""
    root = checked(value, "policy")
    wanted = WantedProfile(DEFAULT_SCHEDULER_NAME, {}, notes=passed_over(root, "policy"))
    filters = _filters(root, registry, wanted)
    scores = _scores(root, registry, wanted)
    for name, entry in registry.items():
        neither = not entry.filters and not entry.scores
        weight, arguments = scores.get(name, (None, {}))
        if entry.filters and weight is not None and name not in filters:
            wanted.notes.append(f"`{name}` was to score only; here it filters as well")
        if name in filters or neither or weight is not None:
            wanted.plugins[name] = WantedPlugin(entry.filters or neither, weight, arguments)
    if root.get("extenders"):
        wanted.notes.append("extenders are set in the configuration file of `policyengine run`; --to run prints it")
    return wanted


def _filters(root: Mapping[str, Any], registry: PluginRegistry, wanted: WantedProfile) -> set[str]:
    if "predicates" not in root:
        return {name for name, entry in registry.items() if entry.filters}
    found = {*_MANDATORY, *_SINCE}
    for one in root["predicates"]:
        name, presence = one["name"], one.get("argument", {}).get("labelsPresence")
        if presence is not None:
            labels = presence.get("labels", ())
            if labels:
                wanted.rules.append(label_filter(name, *((labels,) if presence.get("presence") else ((), labels))))
        elif name in _PREDICATES and not one.get("argument"):
            found.update(_PREDICATES[name])
        else:
            wanted.notes.append(f"predicate `{name}` has no equivalent; it was left out")
    return found


def _scores(root: Mapping[str, Any], registry: PluginRegistry, wanted: WantedProfile) -> Scores:
    """The weights of two priorities of one plugin add up, as they did."""
    found: Scores = {}
    if "priorities" not in root:
        weights = {name: entry.default_weight for name, entry in registry.items() if entry.default_weight}
        found = {name: (weight, {}) for name, weight in (weights | dict.fromkeys(LIGHT, 1)).items()}
    for one in root.get("priorities", ()):
        name, weight, argument = one["name"], one.get("weight") or 1, one.get("argument", {})
        preference, ratio = argument.get("labelPreference"), argument.get("requestedToCapacityRatioArguments")
        if preference:
            label = [preference["label"]]
            wanted.rules.append(label_score(name, weight, *((label,) if preference.get("presence") else ((), label))))
        elif ratio:
            strategy = {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": ratio.get("shape", [])},
                **({"resources": ratio["resources"]} if ratio.get("resources") else {}),
            }
            _add(found, "NodeResourcesFit", weight, {"scoringStrategy": strategy}, wanted)
        elif name in _PRIORITIES and not argument:
            plugin, arguments = _PRIORITIES[name]
            _add(found, plugin, weight, arguments, wanted)
        elif name not in _NOTHING or argument:
            wanted.notes.append(f"priority `{name}` has no equivalent; it was left out")
    hard = root.get("hardPodAffinitySymmetricWeight")
    if hard is not None and "InterPodAffinity" in found:
        found["InterPodAffinity"] = (found["InterPodAffinity"][0], {"hardPodAffinityWeight": hard})
    return found


def _add(found: Scores, plugin: str, weight: int, arguments: dict[str, Any], wanted: WantedProfile) -> None:
    before, given = found.get(plugin, (0, {}))
    if before and given != arguments:
        wanted.notes.append(f"two strategies of `{plugin}` cannot both score; the first is kept with both weights")
        arguments = given
    found[plugin] = (before + weight, arguments)
