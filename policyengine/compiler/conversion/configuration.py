"""`KubeSchedulerConfiguration` (kubescheduler.config.k8s.io/v1), read as kube-scheduler reads it.

Rules (v1.36, apis/config/v1/default_plugins.go `mergePluginSet`, framework/runtime/framework.go
`expandMultiPointPlugins`):
1. A profile's multiPoint set is merged into the default one: `disabled` takes out (`*`: everything), an `enabled` entry
   takes the default's place, others are appended.
2. At each extension point the multiPoint plugins that implement it are added, unless they are disabled there or
   enabled there on their own, which is then what counts.
3. A score without a weight has weight 1.

Its extenders belong into the configuration file of `policyengine run`. The old `Policy` has them too, but writes
`enableHttps` and the time-out in nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from policyengine.checked_yaml import schema_errors
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.plugin_entry import ArgumentError, PluginEntry


class ConversionError(ValueError):
    """A configuration that cannot be read; one sentence that says where and what was expected."""


@dataclass(slots=True)
class WantedPlugin:
    """One in-tree plugin as a profile has it."""

    filters: bool
    """Whether it filters; for a plugin without a filter, whether it is there at all."""
    weight: int | None
    """Of its score; None where it does not score."""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class WantedProfile:
    """One profile."""

    scheduler_name: str
    plugins: dict[str, WantedPlugin]
    """By name; a plugin that is switched off is absent."""
    rules: list[str] = field(default_factory=list)
    """Members of the policy that stand for something no plugin does, as text."""
    notes: list[str] = field(default_factory=list)
    """What has no equivalent, a sentence each."""
    backoff: tuple[float, float] | None = None
    """Seconds, where they are not the default."""


def checked(value: object, form: str) -> dict[str, Any]:
    """A document without its nulls, which mean the same as nothing.

    Arguments:
        form: what of `configurations.schema.json` it is held against.

    Raises:
        ConversionError: it is not of that form.
    """
    data = _without_nulls(value)
    schema = _schemas()
    found: Any = next(schema_errors(data, {**schema, **schema["$defs"].get(form, {})}), None)
    if found is None:
        return data  # type: ignore[no-any-return]
    path = found.json_path.removeprefix("$").removeprefix(".")
    if found.validator == "required":
        missing = next(name for name in found.validator_value if name not in found.instance)
        raise ConversionError(f"`{path}.{missing}` is missing" if path else f"`{missing}` is missing")
    raise ConversionError(f"`{path or 'the document'}` is not {found.schema['title']}")


@cache
def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath("configurations.schema.json").read_bytes())
    return found


def _without_nulls(value: object) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, float) and value.is_integer():
        return int(value)  # to a JSON schema, 3.0 is an integer
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def kind_of(value: object) -> str:
    """The kind of a document. Raises `ConversionError`."""
    kind = checked(value, "").get("kind")
    if kind not in ("KubeSchedulerConfiguration", "Policy"):
        told = "is missing" if kind is None else f"is `{kind}`; KubeSchedulerConfiguration and Policy are read"
        raise ConversionError(f"`kind` {told}")
    return str(kind)


DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_BACKOFF = (1.0, 10.0)
VERSIONS = ("v1", "v1beta3", "v1beta2")
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
_INSTEAD = {
    "Coscheduling": "write a `gang` rule",
    "CapacityScheduling": "write `quota` rules",
    "QOSSort": "write `queue { order by pod.priority desc, pod.qos desc }`",
    "NodeResourcesAllocatable": "write a `score` rule over `node.allocatable`",
}
"""Plugins of kubernetes-sigs/scheduler-plugins -> what takes their place."""
_OF_POD_GROUPS = frozenset({"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"})
"""What kube-scheduler 1.36 has by the feature gates GangScheduling and TopologyAwareWorkloadScheduling."""
_POD_GROUP_RULES = """let group = pod.podGroup.orValue("")
gang "pod-group" when group != "" {
  key: pod.namespace + "/" + group
  min: podGroup.?minMember.orValue(1)
  timeout: 5min
}
filter "pod-group-exists" when group != "" {
  require podGroup.hasValue() else "PodGroup {pod.namespace}/{group} not found"
}"""
"""What stands for them; how long a part of a group may hold room is theirs (plugins/gangscheduling, v1.36)."""

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
    if version != "v1":
        shared.append(f"{version} was read as v1, whose default plugins and weights are kube-scheduler 1.36's")
    initial, most = DEFAULT_BACKOFF
    backoff = (float(root.get("podInitialBackoffSeconds", initial)), float(root.get("podMaxBackoffSeconds", most)))
    given = root.get("profiles") or [{}]
    profiles = [_profile(one, f"profiles[{number}]", registry) for number, one in enumerate(given)]
    names = [profile.scheduler_name for profile in profiles]
    if len(set(names)) < len(names):
        raise ConversionError("two profiles have one `schedulerName`")
    for profile in profiles:
        profile.notes[:0] = shared
        profile.backoff = None if backoff == DEFAULT_BACKOFF else backoff
    return profiles


def _profile(given: Mapping[str, Any], path: str, registry: PluginRegistry) -> WantedProfile:
    wanted = WantedProfile(given.get("schedulerName", DEFAULT_SCHEDULER), {})
    if given.get("percentageOfNodesToScore"):
        wanted.notes.append(_ELSEWHERE["percentageOfNodesToScore"])
    sets = {
        point: _PluginSet(given.get("plugins", {}).get(point, {}), f"{path}.plugins.{point}")
        for point in ("multiPoint", *POINTS)
    }
    multi = _merged(registry, sets["multiPoint"])
    enabled = {point: _at_point(point, multi, sets[point], registry) for point in POINTS}
    used = {**multi, **{name: None for plugins in enabled.values() for name in plugins}}
    if not _OF_POD_GROUPS.isdisjoint(used):
        wanted.rules.append(_POD_GROUP_RULES)
    for name in used:
        if name not in registry and name not in ("DefaultBinder", *_OF_POD_GROUPS):
            instead = _INSTEAD.get(name)
            wanted.notes.append(f"`{name}` is no plugin of kube-scheduler's own" + (f": {instead}" if instead else ""))
    if "DefaultBinder" not in enabled["bind"]:
        wanted.notes.append("`DefaultBinder` is disabled; a pod is bound as it would do it")
    if not enabled["queueSort"]:
        wanted.notes.append("`queueSort` is empty; the order by priority is kept")
    if "PrioritySort" in multi:  # another order is noted, and has no effect
        enabled["queueSort"]["PrioritySort"] = None
    arguments = _arguments(given.get("pluginConfig", ()), f"{path}.pluginConfig", registry, wanted)
    for name, entry in registry.items():
        _want(wanted, entry, enabled, arguments.get(name, {}), registry)
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


def _arguments(
    given: Sequence[Mapping[str, Any]], path: str, registry: PluginRegistry, wanted: WantedProfile
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, one in enumerate(given):
        name = one["name"]
        arguments = {key: value for key, value in one.get("args", {}).items() if key not in ("apiVersion", "kind")}
        if name not in registry:
            wanted.notes.append(f"the arguments of `{name}` were left out")
            continue
        if name in found:
            raise ConversionError(f"`{path}[{number}]`: the arguments of `{name}` are given twice")
        try:
            registry[name].build(arguments)
        except ArgumentError as error:
            raise ConversionError(f"`{path}[{number}].args`: {error}") from None
        defaults = DEFAULT_ARGUMENTS.get(name, {})
        found[name] = {key: value for key, value in arguments.items() if defaults.get(key) != value}
    return found


HEAD = {"apiVersion": "policyengine.io/v1", "kind": "SchedulerConfiguration"}
_NANOSECONDS = 10**9


def run_configuration(value: object) -> dict[str, Any]:
    """The configuration, as data for YAML; whether it is valid is for its reader to say. Raises `ConversionError`."""
    return {**HEAD, "extenders": [_extender(one) for one in checked(value, "extenders").get("extenders", ())]}


def _extender(given: dict[str, Any]) -> dict[str, Any]:
    if "enableHttps" in given:
        given["enableHTTPS"] = given.pop("enableHttps")
    timeout = given.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        given["httpTimeout"] = f"{timeout / _NANOSECONDS:g}s"
    if given.get("httpTimeout") in ("0s", "0"):
        del given["httpTimeout"]  # the default, to kube-scheduler
    return given
