"""Plugins that are not kube-scheduler's own: a shipped policy, rules, or a note of what takes their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.conversion.node_label import node_label
from policyengine.compiler.conversion.reading import ConversionError, checked, passed_over
from policyengine.compiler.conversion.shipped import POD_GROUPS, SHIPPED, Members, members
from policyengine.compiler.conversion.wanted import WantedProfile

_OF_POD_GROUPS: Final = frozenset({"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"})
"""What kube-scheduler 1.36 has by the feature gates GangScheduling and TopologyAwareWorkloadScheduling."""
QUOTAS: Final = ("CapacityScheduling", "Capacity")
"""Their quotas are objects, which are given beside the configuration."""
_LABEL: Final = "NodeLabel"
_INSTEAD: Final = {
    "QOSSort": "write `queue { order by pod.priority desc, pod.qos desc }`",
    "NodeResourcesAllocatable": "write a `score` rule over `node.allocatable`",
}
"""Plugins of kubernetes-sigs/scheduler-plugins -> what takes their place."""

Given = tuple[str, dict[str, Any]]
"""The arguments of a plugin, and where they stand."""
Enabled = Mapping[str, Mapping[str, int | None]]
"""Extension point -> plugins -> their weight there."""


def known_elsewhere(name: str) -> bool:
    """Whether the arguments of the plugin are read here."""
    return name in SHIPPED or name in QUOTAS or name == _LABEL


def take_others(wanted: WantedProfile, enabled: Enabled, given: Mapping[str, Given], registry: PluginRegistry) -> None:
    """Put into the profile what its other plugins mean. Raises `ConversionError`."""
    taken: dict[str, str] = {}
    for name in dict.fromkeys(name for plugins in enabled.values() for name in plugins):
        if name in registry or name == "DefaultBinder":
            continue
        path, arguments = given.get(name, ("", {}))
        weight = enabled["score"].get(name) or 1
        if name in _OF_POD_GROUPS:
            if _OF_POD_GROUPS.isdisjoint(taken.values()):
                _take(wanted, name, members(POD_GROUPS, {}, weight), taken)
        elif name in SHIPPED:
            read = _checked(arguments, SHIPPED[name].form, path, wanted)
            try:
                found = members(SHIPPED[name], read, weight)
            except ConversionError as error:
                raise ConversionError(f"`{path}`: {error}") from None
            if _take(wanted, name, found, taken):
                wanted.notes.append(f"`{name}` became the rules of policies/{SHIPPED[name].policy}.policy")
                wanted.notes += [f"`{name}`: {SHIPPED[name].needs}"] if SHIPPED[name].needs else []
        elif name in QUOTAS:
            wanted.counts_quotas = True
        elif name == _LABEL:
            scores = weight if name in enabled["score"] else None
            labels = _checked(arguments, "nodeLabel", path, wanted)
            wanted.rules += node_label(labels, name in enabled["filter"], scores)
        else:
            instead = _INSTEAD.get(name)
            wanted.notes.append(f"`{name}` is no plugin of kube-scheduler's own" + (f": {instead}" if instead else ""))


def _take(wanted: WantedProfile, name: str, found: Members, taken: dict[str, str]) -> bool:
    """Whether it may stand beside what is taken already."""
    rival = next((taken[one] for one in found.names if one in taken), None)
    if rival is not None:
        wanted.notes.append(f"`{rival}` and `{name}` cannot be had together; the first is kept")
        return False
    taken.update(dict.fromkeys(found.names, name))
    wanted.rules += found.texts
    wanted.queue = wanted.queue or found.queue
    return True


def _checked(arguments: dict[str, Any], form: str, path: str, wanted: WantedProfile) -> dict[str, Any]:
    wanted.notes += passed_over(arguments, form, path)
    try:
        return checked(arguments, form)
    except ConversionError as error:
        raise ConversionError(f"`{path}`: {error}") from None
