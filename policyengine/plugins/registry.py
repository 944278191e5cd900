"""The in-tree plugins by name, in kube-scheduler's order, and the profile they make by default.

The order is that of the default profile of v1.36 (apis/config/v1/default_plugins.go): filters are asked in it and
the first refusal counts, scores are listed in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from types import ModuleType
from typing import Any, Final

from policyengine.framework.plugin import FilterPlugin, Plugin, PreEnqueuePlugin, ScorePlugin, extends
from policyengine.framework.plugin_entry import NO_ARGUMENTS, Arguments, PluginEntry
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PreBindPlugin, ReservePlugin
from policyengine.plugins import priority_sort, scheduling_gates
from policyengine.plugins.affinity import inter_pod_affinity, node_affinity
from policyengine.plugins.devices import dynamic_resources
from policyengine.plugins.node_state import (
    image_locality,
    node_declared_features,
    node_name,
    node_ports,
    node_unschedulable,
    taint_toleration,
)
from policyengine.plugins.preemption import default_preemption
from policyengine.plugins.resources import balanced_allocation as node_resources_balanced_allocation
from policyengine.plugins.resources import fit as node_resources_fit
from policyengine.plugins.topology import pod_topology_spread
from policyengine.plugins.volumes import (
    node_volume_limits,
    volume_binding,
    volume_capacity,
    volume_restrictions,
    volume_zone,
)

_LISTED: Final[tuple[tuple[ModuleType, Callable[..., Any], bool, int | None], ...]] = (
    (scheduling_gates, scheduling_gates.SchedulingGates, False, None),
    (priority_sort, priority_sort.PrioritySort, False, None),
    (node_unschedulable, node_unschedulable.NodeUnschedulable, True, None),
    (node_name, node_name.NodeName, True, None),
    (taint_toleration, taint_toleration.TaintToleration, True, 3),
    (node_affinity, node_affinity.NodeAffinity, True, 2),
    (node_ports, node_ports.NodePorts, True, None),
    (node_resources_fit, node_resources_fit.NodeResourcesFit, True, 1),
    (volume_restrictions, volume_restrictions.VolumeRestrictions, True, None),
    (node_volume_limits, node_volume_limits.NodeVolumeLimits, True, None),
    (volume_binding, volume_capacity.volume_binding, True, 1),
    (volume_zone, volume_zone.VolumeZone, True, None),
    (pod_topology_spread, pod_topology_spread.PodTopologySpread, True, 2),
    (inter_pod_affinity, inter_pod_affinity.InterPodAffinity, True, 2),
    (dynamic_resources, dynamic_resources.DynamicResources, True, 2),
    (default_preemption, default_preemption.DefaultPreemption, False, None),
    (node_resources_balanced_allocation, node_resources_balanced_allocation.NodeResourcesBalancedAllocation, False, 1),
    (image_locality, image_locality.ImageLocality, False, 1),
    (node_declared_features, node_declared_features.NodeDeclaredFeatures, True, None),
)
"""A row a plugin: its module (`NAME`, and `ARGUMENTS` where it takes any), what makes it, whether it filters, the
weight of its score, None where it has none."""


def _entry(
    order: int, module: ModuleType, made_by: Callable[..., Any], filters: bool, weight: int | None
) -> PluginEntry:
    arguments: Mapping[str, object] | None = getattr(module, "ARGUMENTS", None)
    if arguments is None:
        return PluginEntry(module.NAME, lambda _: made_by(), NO_ARGUMENTS, weight, filters, order)
    return PluginEntry(module.NAME, made_by, arguments, weight, filters, order)


_ENTRIES: Final = [_entry(order, *row) for order, row in enumerate(_LISTED)]
IN_TREE: Final[Mapping[str, PluginEntry]] = {entry.name: entry for entry in _ENTRIES}


def build(name: str, arguments: Arguments | None = None) -> Any:
    """The plugin with these arguments. KeyError for an unknown name, `ArgumentError` for arguments that do not fit."""
    return IN_TREE[name].build(arguments)


def in_tree_profile(
    name: str,
    scheduler_name: str,
    policy_hash: str,
    plugins: Mapping[str, tuple[Any, int | None]],
) -> Profile:
    """A profile of just these plugins, {name: (plugin, weight; None: its default)}, in kube-scheduler's order."""
    built: list[tuple[PluginEntry, Plugin, int | None]] = [
        (entry, plugins[entry.name][0], plugins[entry.name][1]) for entry in IN_TREE.values() if entry.name in plugins
    ]
    return Profile(
        name=name,
        scheduler_name=scheduler_name,
        policy_hash=policy_hash,
        pre_enqueue=tuple(plugin for _, plugin, _ in built if extends(plugin, PreEnqueuePlugin)),
        filters=tuple(plugin for _, plugin, _ in built if extends(plugin, FilterPlugin)),
        scores=tuple(
            (plugin, entry.default_weight if weight is None else weight)
            for entry, plugin, weight in built
            if extends(plugin, ScorePlugin) and entry.default_weight is not None
        ),
        post_filters=tuple(plugin for _, plugin, _ in built if extends(plugin, PostFilterPlugin)),
        reserve=tuple(plugin for _, plugin, _ in built if extends(plugin, ReservePlugin)),
        pre_bind=tuple(plugin for _, plugin, _ in built if extends(plugin, PreBindPlugin)),
    )


def default_profile() -> Profile:
    """kube-scheduler's own: every in-tree plugin with its default arguments and weight."""
    plugins = {name: (build(name), None) for name in IN_TREE}
    return in_tree_profile("default", "default-scheduler", sha256(b"").hexdigest(), plugins)
