"""`KubeSchedulerConfiguration` before v1beta3, as the v1 that means the same.

What changed, from the types and defaults of Kubernetes 1.16 to 1.25 (staging/src/k8s.io/kube-scheduler/config,
pkg/scheduler/apis/config/v1beta1/default_plugins.go):

1. v1alpha1 has one profile, at the root, and `algorithmSource` beside it. Its `postFilter` is what `preScore` is now.
2. `unreserve` became a part of `reserve`. Preemption, the time-out of volumes and the weight of affinity that others
   require, at the root once, are arguments of plugins.
3. Plugins that scored by resources became strategies of NodeResourcesFit; others went into one that is there still, or
   are gone.
4. Until v1beta2 the plugins that score what a pod prefers had weight 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

AS_V1: Final = ("v1", "v1beta3")
VERSIONS: Final = (*AS_V1, "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
LIGHT: Final = ("TaintToleration", "NodeAffinity", "InterPodAffinity")
"""Rule 4."""
_STRATEGIES: Final = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
_PART_OF: Final = {
    **dict.fromkeys(("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits", "CSILimits"), "NodeVolumeLimits"),
    **dict.fromkeys(("SelectorSpread", "DefaultPodTopologySpread"), "PodTopologySpread"),
}
_GONE: Final = ("NodePreferAvoidPods", "ServiceAffinity", "NodeResourceLimits")
_ROOT_ALPHA1: Final = ("schedulerName", "plugins", "pluginConfig")

Json = dict[str, Any]


class Older:
    """One configuration of an older version on its way to v1; `notes` says what got lost, a sentence each."""

    def __init__(self, root: Json, version: str) -> None:
        self.root = dict(root)
        self.version = version
        self.notes: list[str] = []

    def as_v1(self) -> Json:
        """The same as v1."""
        if self.version == "v1alpha1":
            self._from_the_root()
        given = self.root.get("profiles") or [{}]
        profiles = [self._profile(dict(profile)) for profile in given]
        for profile in profiles:
            self._settings(profile)
        gone = ("disablePreemption", "bindTimeoutSeconds", "hardPodAffinitySymmetricWeight", "algorithmSource")
        return {**{key: value for key, value in self.root.items() if key not in gone}, "profiles": profiles}

    def _from_the_root(self) -> None:
        """Rule 1. A provider is the default one, or the one that packs; a Policy is read by itself."""
        profile: Json = {key: self.root.pop(key) for key in _ROOT_ALPHA1 if key in self.root}
        plugins = dict(profile.get("plugins", {}))
        if "postFilter" in plugins:
            plugins["preScore"] = plugins.pop("postFilter")
        profile["plugins"] = plugins
        provider = self.root.get("algorithmSource", {}).get("provider")
        if provider == "ClusterAutoscalerProvider":
            _argue(profile, "NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}})
        self.root["profiles"] = [profile]

    def _profile(self, profile: Json) -> Json:
        plugins = {point: _copy(plugins) for point, plugins in profile.get("plugins", {}).items()}
        unreserve = plugins.pop("unreserve", None)
        if unreserve is not None:
            reserve = plugins.setdefault("reserve", {"enabled": [], "disabled": []})
            there = {one["name"] for one in reserve["enabled"]}
            reserve["enabled"] += [one for one in unreserve["enabled"] if one["name"] not in there]
        profile["pluginConfig"] = [dict(one) for one in profile.get("pluginConfig", ())]
        strategy = self._renamed(plugins)
        self._strategy(profile, strategy)
        _light(plugins)
        profile["plugins"] = plugins
        return profile

    def _renamed(self, plugins: Json) -> str | None:
        """Rule 3, and the strategy that is asked for: of several the first."""
        strategy: str | None = None
        for plugin_set in plugins.values():
            kept: dict[str, Json] = {}
            for one in plugin_set["enabled"]:
                name = one["name"]
                if name in _GONE:
                    self.notes.append(f"`{name}` is gone from kube-scheduler; it was left out")
                    continue
                if name in _STRATEGIES:
                    if strategy not in (None, name):
                        self.notes.append(f"`{strategy}` and `{name}` cannot both score; the first is kept")
                        continue
                    strategy = name
                new = "NodeResourcesFit" if name in _STRATEGIES else _PART_OF.get(name, name)
                before = kept.get(new)
                weight = (one.get("weight") or 0) + (before.get("weight") or 0 if before else 0)
                kept[new] = {"name": new, **({"weight": weight} if weight else {})}
            plugin_set["enabled"] = list(kept.values())
            plugin_set["disabled"] = self._disabled(plugin_set["disabled"])
        return strategy

    def _disabled(self, given: list[Json]) -> list[Json]:
        names = []
        for one in given:
            name = one["name"]
            if name in _PART_OF:
                self.notes.append(f"`{name}` is a part of {_PART_OF[name]} now, which is kept")
            elif name not in _GONE:
                names.append("NodeResourcesFit" if name in _STRATEGIES else name)
        return [{"name": name} for name in dict.fromkeys(names)]

    def _strategy(self, profile: Json, name: str | None) -> None:
        """The arguments of the plugin that scores by resources, as NodeResourcesFit takes them."""
        taken = {plugin: _taken(profile, plugin) for plugin in _STRATEGIES}
        arguments = taken[name or "NodeResourcesLeastAllocated"]
        strategy: Json = {"type": _STRATEGIES[name]} if name else {}
        if arguments.get("resources"):
            strategy |= {"type": strategy.get("type", "LeastAllocated"), "resources": arguments["resources"]}
        if name == "RequestedToCapacityRatio":
            strategy["requestedToCapacityRatio"] = {"shape": arguments.get("shape", [])}
        if strategy:
            _argue(profile, "NodeResourcesFit", {"scoringStrategy": strategy})

    def _settings(self, profile: Json) -> None:
        """Rule 2."""
        if self.root.get("disablePreemption"):
            post_filter = profile["plugins"].setdefault("postFilter", {"enabled": [], "disabled": []})
            post_filter["disabled"] = [*post_filter["disabled"], {"name": "DefaultPreemption"}]
        for setting, plugin, argument in (
            ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
            ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
        ):
            if setting in self.root:
                _argue(profile, plugin, {argument: self.root[setting]})


def _copy(plugin_set: Mapping[str, Any]) -> Json:
    return {key: [dict(one) for one in plugin_set.get(key, ())] for key in ("enabled", "disabled")}


def _light(plugins: Json) -> None:
    multi = plugins.setdefault("multiPoint", {"enabled": [], "disabled": []})
    said = {one["name"] for key in ("enabled", "disabled") for one in multi[key]}
    if "*" not in said:
        multi["enabled"] += [{"name": name, "weight": 1} for name in LIGHT if name not in said]


def _taken(profile: Json, name: str) -> Json:
    """The arguments of a plugin, which are then no more in the profile."""
    found = [one for one in profile["pluginConfig"] if one["name"] == name]
    profile["pluginConfig"] = [one for one in profile["pluginConfig"] if one["name"] != name]
    return dict(found[0].get("args", {})) if found else {}


def _argue(profile: Json, name: str, more: Json) -> None:
    """Give a plugin an argument; one that it has goes before."""
    config = profile.setdefault("pluginConfig", [])
    for one in config:
        if one["name"] == name:
            one["args"] = {**more, **one.get("args", {})}
            return
    config.append({"name": name, "args": more})
