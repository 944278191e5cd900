"""The in-tree plugins by name, in kube-scheduler's order, and the profile they make by default.

The order is that of the default profile of v1.36 (apis/config/v1/default_plugins.go): filters are asked in it and
the first refusal counts, scores are listed in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from policyengine.framework.plugin import FilterPlugin, Plugin, PreEnqueuePlugin, ScorePlugin
from policyengine.framework.plugin_entry import Arguments, PluginEntry
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PreBindPlugin, ReservePlugin
from policyengine.plugins import (
    default_preemption,
    dynamic_resources,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    priority_sort,
    scheduling_gates,
    taint_toleration,
    volume_binding,
    volume_capacity,
    volume_restrictions,
    volume_zone,
)


def _entries() -> dict[str, PluginEntry]:
    listed = (
        PluginEntry(scheduling_gates.NAME, lambda _: scheduling_gates.SchedulingGates()),
        PluginEntry(priority_sort.NAME, lambda _: priority_sort.PrioritySort()),
        PluginEntry(node_unschedulable.NAME, lambda _: node_unschedulable.NodeUnschedulable(), filters=True),
        PluginEntry(node_name.NAME, lambda _: node_name.NodeName(), filters=True),
        PluginEntry(
            taint_toleration.NAME,
            lambda _: taint_toleration.TaintToleration(),
            default_weight=3,
            filters=True,
        ),
        PluginEntry(
            node_affinity.NAME,
            node_affinity.NodeAffinity,
            node_affinity.ARGUMENTS,
            default_weight=2,
            filters=True,
        ),
        PluginEntry(node_ports.NAME, lambda _: node_ports.NodePorts(), filters=True),
        PluginEntry(
            node_resources_fit.NAME,
            node_resources_fit.NodeResourcesFit,
            node_resources_fit.ARGUMENTS,
            default_weight=1,
            filters=True,
        ),
        PluginEntry(volume_restrictions.NAME, lambda _: volume_restrictions.VolumeRestrictions(), filters=True),
        PluginEntry(node_volume_limits.NAME, lambda _: node_volume_limits.NodeVolumeLimits(), filters=True),
        PluginEntry(
            volume_binding.NAME,
            volume_capacity.volume_binding,
            volume_binding.ARGUMENTS,
            default_weight=1,
            filters=True,
        ),
        PluginEntry(volume_zone.NAME, lambda _: volume_zone.VolumeZone(), filters=True),
        PluginEntry(
            pod_topology_spread.NAME,
            pod_topology_spread.PodTopologySpread,
            pod_topology_spread.ARGUMENTS,
            default_weight=2,
            filters=True,
        ),
        PluginEntry(
            inter_pod_affinity.NAME,
            inter_pod_affinity.InterPodAffinity,
            inter_pod_affinity.ARGUMENTS,
            default_weight=2,
            filters=True,
        ),
        PluginEntry(
            dynamic_resources.NAME,
            dynamic_resources.DynamicResources,
            dynamic_resources.ARGUMENTS,
            default_weight=2,
            filters=True,
        ),
        PluginEntry(
            default_preemption.NAME,
            default_preemption.DefaultPreemption,
            default_preemption.ARGUMENTS,
        ),
        PluginEntry(
            node_resources_balanced_allocation.NAME,
            node_resources_balanced_allocation.NodeResourcesBalancedAllocation,
            node_resources_balanced_allocation.ARGUMENTS,
            default_weight=1,
        ),
        PluginEntry(image_locality.NAME, lambda _: image_locality.ImageLocality(), default_weight=1),
        PluginEntry(node_declared_features.NAME, lambda _: node_declared_features.NodeDeclaredFeatures(), filters=True),
    )
    return {
        entry.name: PluginEntry(entry.name, entry.factory, entry.arguments, entry.default_weight, entry.filters, order)
        for order, entry in enumerate(listed)
    }


IN_TREE: Final[Mapping[str, PluginEntry]] = _entries()


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
        pre_enqueue=tuple(plugin for _, plugin, _ in built if isinstance(plugin, PreEnqueuePlugin)),
        filters=tuple(plugin for _, plugin, _ in built if isinstance(plugin, FilterPlugin)),
        scores=tuple(
            (plugin, entry.default_weight if weight is None else weight)
            for entry, plugin, weight in built
            if isinstance(plugin, ScorePlugin) and entry.default_weight is not None
        ),
        post_filters=tuple(plugin for _, plugin, _ in built if isinstance(plugin, PostFilterPlugin)),
        reserve=tuple(plugin for _, plugin, _ in built if isinstance(plugin, ReservePlugin)),
        pre_bind=tuple(plugin for _, plugin, _ in built if isinstance(plugin, PreBindPlugin)),
    )


def default_profile() -> Profile:
    """kube-scheduler's own: every in-tree plugin with its default arguments and weight."""
    plugins = {name: (build(name), None) for name in IN_TREE}
    return in_tree_profile("default", "default-scheduler", sha256(b"").hexdigest(), plugins)
