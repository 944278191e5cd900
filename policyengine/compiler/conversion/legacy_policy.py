"""The scheduler `Policy` API (kind Policy, v1), removed in Kubernetes 1.23: predicates, priorities, extenders.

The names and what they became are those of v1.22 (pkg/scheduler/framework/plugins/legacy_registry.go). A list that is
absent means the defaults; one that is there, empty or not, means what it names, beside the predicates that no policy
could switch off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.conversion.configuration import (
    DEFAULT_SCHEDULER,
    ConversionError,
    Document,
    WantedPlugin,
    WantedProfile,
)

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


def read_policy(value: object, registry: PluginRegistry) -> WantedProfile:
    """The one profile of a Policy. Raises `ConversionError`."""
    root = Document(value, "")
    wanted = WantedProfile(DEFAULT_SCHEDULER, {})
    filters = _filters(root, registry, wanted)
    scores = _scores(root, registry, wanted)
    for name, entry in registry.items():
        neither = not entry.filters and not entry.scores
        weight, arguments = scores.get(name, (None, {}))
        if entry.filters and weight is not None and name not in filters:
            wanted.notes.append(f"`{name}` was to score only; here it filters as well")
        if name in filters or neither or weight is not None:
            wanted.plugins[name] = WantedPlugin(entry.filters or neither, weight, arguments)
    if root.has("extenders"):
        wanted.notes.append("extenders are set in the configuration file of `policyengine run`; --to run prints it")
    return wanted


def _filters(root: Document, registry: PluginRegistry, wanted: WantedProfile) -> set[str]:
    if not root.given("predicates"):
        return {name for name, entry in registry.items() if entry.filters}
    found = {*_MANDATORY, *_SINCE}
    for one in root.listed("predicates"):
        name = one.text("name")
        if one.has("argument"):
            wanted.rules += _label_filter(name, one.inner("argument"), wanted)
        elif name in _PREDICATES:
            found.update(_PREDICATES[name])
        else:
            wanted.notes.append(f"predicate `{name}` has no equivalent; it was left out")
    return found


def _scores(root: Document, registry: PluginRegistry, wanted: WantedProfile) -> dict[str, tuple[int, dict[str, Any]]]:
    """{plugin: (weight, arguments)}; the weights of two priorities of one plugin add up, as they did."""
    if not root.given("priorities"):
        return {name: (entry.default_weight, {}) for name, entry in registry.items() if entry.default_weight}
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for one in root.listed("priorities"):
        name, weight = one.text("name"), one.whole("weight") or 1
        if one.has("argument"):
            _argued(name, weight, one.inner("argument"), wanted, found)
        elif name in _PRIORITIES:
            plugin, arguments = _PRIORITIES[name]
            _add(found, plugin, weight, arguments, wanted)
        elif name not in _NOTHING:
            wanted.notes.append(f"priority `{name}` has no equivalent; it was left out")
    hard = root.whole("hardPodAffinitySymmetricWeight")
    if hard is not None and "InterPodAffinity" in found:
        weight, _ = found["InterPodAffinity"]
        found["InterPodAffinity"] = (weight, {"hardPodAffinityWeight": hard})
    return found


def _add(
    found: dict[str, tuple[int, dict[str, Any]]],
    plugin: str,
    weight: int,
    arguments: dict[str, Any],
    wanted: WantedProfile,
) -> None:
    before, given = found.get(plugin, (0, {}))
    if before and given != arguments:
        wanted.notes.append(f"two strategies of `{plugin}` cannot both score; the first is kept with both weights")
        arguments = given
    found[plugin] = (before + weight, arguments)


def _label_filter(name: str, argument: Document, wanted: WantedProfile) -> Iterable[str]:
    """`labelsPresence`: every label must be there, or none of them."""
    if not argument.has("labelsPresence"):
        wanted.notes.append(f"predicate `{name}` has no equivalent; it was left out")
        return []
    presence = argument.inner("labelsPresence")
    there = presence.flag("presence")
    tests = [f"{json.dumps(label)} in node.labels" for label in presence.texts("labels")]
    requires = " ".join(f"require {test}" if there else f"require !({test})" for test in tests)
    return [f"filter {json.dumps(name)} {{ {requires} }}"]


def _argued(
    name: str,
    weight: int,
    argument: Document,
    wanted: WantedProfile,
    found: dict[str, tuple[int, dict[str, Any]]],
) -> None:
    """Priorities with an argument: `labelPreference` and `requestedToCapacityRatioArguments`."""
    if argument.has("labelPreference"):
        preference = argument.inner("labelPreference")
        label = json.dumps(preference.text("label"))
        yes, no = (100, 0) if preference.flag("presence") else (0, 100)
        wanted.rules.append(f"score {json.dumps(name)} weight {weight} = {label} in node.labels ? {yes} : {no}")
    elif argument.has("requestedToCapacityRatioArguments"):
        ratio = argument.inner("requestedToCapacityRatioArguments")
        strategy: dict[str, Any] = {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": ratio.plain_list("shape")},
        }
        if ratio.has("resources"):
            strategy["resources"] = ratio.plain_list("resources")
        arguments = {"scoringStrategy": strategy}
        _add(found, "NodeResourcesFit", weight, arguments, wanted)
    else:
        wanted.notes.append(f"priority `{name}` has no equivalent; it was left out")


def kind_of(value: object) -> str:
    """The kind of a document. Raises `ConversionError`."""
    root = Document(value, "")
    kind = root.text("kind")
    if kind not in ("KubeSchedulerConfiguration", "Policy"):
        raise ConversionError(f"`kind` is `{kind}`; KubeSchedulerConfiguration and Policy are read")
    return kind
