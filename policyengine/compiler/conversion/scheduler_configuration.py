"""`KubeSchedulerConfiguration` (kubescheduler.config.k8s.io/v1), read as kube-scheduler reads it.

Rules (v1.36, apis/config/v1/default_plugins.go `mergePluginSet`, framework/runtime/framework.go
`expandMultiPointPlugins`):
1. A profile's multiPoint set is merged into the default one: `disabled` takes out (`*`: everything), an `enabled` entry
   takes the default's place, others are appended.
2. At each extension point the multiPoint plugins that implement it are added, unless they are disabled there or
   enabled there on their own, which is then what counts.
3. A score without a weight has weight 1.

What is older is made v1 first (`older_versions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.conversion.older_versions import AS_V1, VERSIONS, Older
from policyengine.compiler.conversion.others import QUOTAS, Given, known_elsewhere, take_others
from policyengine.compiler.conversion.reading import ConversionError, checked, passed_over
from policyengine.compiler.conversion.wanted import WantedPlugin, WantedProfile
from policyengine.framework.plugin_entry import ArgumentError, PluginEntry

DEFAULT_BACKOFF = (1.0, 10.0)
POINTS = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)
_FILTER, _SCORE = ("preFilter", "filter"), ("preScore", "score")
EXTENSION_POINTS: Mapping[str, Sequence[str]] = {
    "SchedulingGates": ("preEnqueue",),
    "PrioritySort": ("queueSort",),
    "NodeUnschedulable": ("filter",),
    "NodeName": ("filter",),
    "TaintToleration": ("filter", *_SCORE),
    "NodeAffinity": (*_FILTER, *_SCORE),
    "NodePorts": _FILTER,
    "NodeResourcesFit": (*_FILTER, *_SCORE),
    "VolumeRestrictions": _FILTER,
    "NodeVolumeLimits": _FILTER,
    "VolumeBinding": (*_FILTER, *_SCORE, "reserve", "preBind"),
    "VolumeZone": _FILTER,
    "PodTopologySpread": (*_FILTER, *_SCORE),
    "InterPodAffinity": (*_FILTER, *_SCORE),
    "DynamicResources": (*_FILTER, "score", "preEnqueue", "postFilter", "reserve", "preBind"),
    "DefaultPreemption": ("postFilter", "preEnqueue"),
    "NodeResourcesBalancedAllocation": _SCORE,
    "ImageLocality": ("score",),
    "NodeDeclaredFeatures": _FILTER,
    "DefaultBinder": ("bind",),
}
"""What kube-scheduler's plugins implement (pkg/scheduler/framework/plugins, v1.36). One that neither filters nor scores
is there for the first of its points."""
_ELSEWHERE = {
    "leaderElection": "leader election is set in the configuration file of `policyengine run`",
    "clientConnection": "the client's QPS and burst are set in the configuration file of `policyengine run`",
    "extenders": "extenders are set in the configuration file of `policyengine run`; --to run prints it",
    "percentageOfNodesToScore": "every node is looked at, whatever `percentageOfNodesToScore` says",
    "parallelism": "`parallelism` has no meaning here: a decision is a few operations over all nodes at once",
}
_DEFAULTS = {"percentageOfNodesToScore": 0, "parallelism": 16}
"""What needs no word."""
_EVEN = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
DEFAULT_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeResourcesBalancedAllocation": {"resources": _EVEN},
    "NodeResourcesFit": {"scoringStrategy": {"type": "LeastAllocated", "resources": _EVEN}},
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
}
"""What kube-scheduler fills in (apis/config/v1/defaults.go), and so writes into a configuration that it prints."""

Enabled = dict[str, int | None]
"""Plugin -> its weight there."""


def read_configuration(value: object, registry: PluginRegistry) -> list[WantedProfile]:
    """The profiles of a configuration. Raises `ConversionError`."""
    root = checked(value, "configuration")
    version = root["apiVersion"].rpartition("/")[2]
    if version not in VERSIONS:
        raise ConversionError(f"`apiVersion` ends in `{version}`; {', '.join(f'`{one}`' for one in VERSIONS)} are read")
    shared = [told for name, told in _ELSEWHERE.items() if root.get(name) and root[name] != _DEFAULTS.get(name)]
    shared += passed_over(root, "configuration")
    if version != "v1":
        shared.append(f"{version} was read as v1, whose default plugins are kube-scheduler 1.36's")
    if version not in AS_V1:
        older = Older(root, version)
        root, shared = older.as_v1(), [*shared, *older.notes]
    profiles = [
        _profile(one, f"profiles[{number}]", registry) for number, one in enumerate(root.get("profiles") or [{}])
    ]
    names = [profile.scheduler_name for profile in profiles]
    if len(set(names)) < len(names):
        raise ConversionError("two profiles have one `schedulerName`")
    initial, most = DEFAULT_BACKOFF
    backoff = (float(root.get("podInitialBackoffSeconds", initial)), float(root.get("podMaxBackoffSeconds", most)))
    if backoff[0] > backoff[1]:
        raise ConversionError(
            f"`podInitialBackoffSeconds` {backoff[0]:g} is above `podMaxBackoffSeconds` {backoff[1]:g}"
        )
    for profile in profiles:
        profile.notes[:0] = shared
        profile.backoff = None if backoff == DEFAULT_BACKOFF else backoff
    return profiles


def _profile(given: Mapping[str, Any], path: str, registry: PluginRegistry) -> WantedProfile:
    wanted = WantedProfile(given.get("schedulerName", DEFAULT_SCHEDULER_NAME), {})
    if given.get("percentageOfNodesToScore"):
        wanted.notes.append(_ELSEWHERE["percentageOfNodesToScore"])
    sets = {
        point: _PluginSet(given.get("plugins", {}).get(point, {}), f"{path}.plugins.{point}")
        for point in ("multiPoint", *POINTS)
    }
    multi = _merged(registry, sets["multiPoint"])
    enabled = {point: _at_point(point, multi, sets[point], registry) for point in POINTS}
    if "DefaultBinder" not in enabled["bind"]:
        wanted.notes.append("`DefaultBinder` is disabled; a pod is bound as it would do it")
    if not enabled["queueSort"]:
        wanted.notes.append("`queueSort` is empty; the order by priority is kept")
    if "PrioritySort" in multi:  # another order is noted, and has no effect
        enabled["queueSort"]["PrioritySort"] = None
    if any(name in plugins for plugins in enabled.values() for name in QUOTAS):
        enabled["postFilter"].setdefault("DefaultPreemption", None)  # what quotas are owed it gets back for them
    arguments = _given_arguments(given.get("pluginConfig", ()), f"{path}.pluginConfig")
    take_others(wanted, enabled, arguments, registry)
    own = _own_arguments(arguments, registry, wanted)
    for name, entry in registry.items():
        _want(wanted, entry, enabled, own.get(name, {}), registry)
    return wanted


class _PluginSet:
    """What a profile says of one extension point."""

    def __init__(self, given: Mapping[str, Any], path: str) -> None:
        self.disabled = {one["name"] for one in given.get("disabled", ())}
        self.enabled: Enabled = {}
        for number, one in enumerate(given.get("enabled", ())):
            if one["name"] in self.enabled:
                raise ConversionError(f"`{path}.enabled[{number}]`: `{one['name']}` is enabled twice")
            self.enabled[one["name"]] = one.get("weight")


def _merged(registry: PluginRegistry, custom: _PluginSet) -> Enabled:
    """Rule 1."""
    if "*" in custom.disabled:
        return custom.enabled
    kept = {name: entry.default_weight for name, entry in registry.items() if entry.in_base} | {"DefaultBinder": None}
    return {**{name: weight for name, weight in kept.items() if name not in custom.disabled}, **custom.enabled}


def _at_point(point: str, multi: Enabled, custom: _PluginSet, registry: PluginRegistry) -> Enabled:
    """Rule 2. Of other plugins it is not known what they implement: they are taken to be everywhere."""
    if "*" in custom.disabled:
        return custom.enabled
    expanded = {
        name: weight
        for name, weight in multi.items()
        if name not in {*custom.disabled, *custom.enabled} and point in _points(name, registry)
    }
    return {**expanded, **custom.enabled}


def _points(name: str, registry: PluginRegistry) -> Sequence[str]:
    """Where a plugin is asked; of one of a package it is not known but for filters and scores."""
    if name in EXTENSION_POINTS or name not in registry:
        return EXTENSION_POINTS.get(name, POINTS)
    entry = registry[name]
    own = (*(_FILTER if entry.filters else ()), *(_SCORE if entry.scores else ()))
    return own or tuple(point for point in POINTS if point not in (*_FILTER, *_SCORE))


def _want(
    wanted: WantedProfile, entry: PluginEntry, enabled: Mapping[str, Enabled], arguments: Any, registry: PluginRegistry
) -> None:
    name = entry.name
    filters = name in enabled["filter"]
    weight = (enabled["score"][name] or 1) if entry.scores and name in enabled["score"] else None
    if entry.filters and not filters and weight is not None:
        wanted.notes.append(f"`{name}` was to score only; here it filters as well")
        filters = True
    points = _points(name, registry)
    if not entry.filters and entry.scores:
        filters = weight is not None
    elif not entry.filters:
        filters = name in enabled[points[0]]
    if not filters:
        return
    wanted.plugins[name] = WantedPlugin(filters, weight, arguments)
    kept = [point for point in points if name not in enabled[point] and point not in ("filter", "score")]
    for point in kept:
        if point != "preScore" or weight is not None:
            wanted.notes.append(f"`{name}` cannot do without its {point}; it is kept")


def _given_arguments(given: Sequence[Mapping[str, Any]], path: str) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for number, one in enumerate(given):
        name = one["name"]
        if name in found:
            raise ConversionError(f"`{path}[{number}]`: the arguments of `{name}` are given twice")
        arguments = {key: value for key, value in one.get("args", {}).items() if key not in ("apiVersion", "kind")}
        found[name] = (f"{path}[{number}].args", arguments)
    return found


def _own_arguments(
    given: Mapping[str, Given], registry: PluginRegistry, wanted: WantedProfile
) -> dict[str, dict[str, Any]]:
    """Those of kube-scheduler's plugins, without defaults and without what nobody knows."""
    found: dict[str, dict[str, Any]] = {}
    for name, (path, arguments) in given.items():
        if name not in registry:
            if not known_elsewhere(name):
                wanted.notes.append(f"the arguments of `{name}` were left out")
            continue
        known: Any = registry[name].arguments.get("properties", {})
        wanted.notes += [f"`{path}.{key}` is not known; it was passed over" for key in arguments if key not in known]
        kept = {key: value for key, value in arguments.items() if key in known}
        try:
            registry[name].build(kept)
        except ArgumentError as error:
            raise ConversionError(f"`{path}`: {error}") from None
        defaults = DEFAULT_ARGUMENTS.get(name, {})
        found[name] = {key: value for key, value in kept.items() if defaults.get(key) != value}
    return found
