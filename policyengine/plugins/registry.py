"""The in-tree plugins by name, in kube-scheduler's order, and the profile they make by default.

The order is that of the default profile of v1.36 (apis/config/v1/default_plugins.go): filters are asked in it and
the first refusal counts, scores are listed in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.framework.plugin import FilterPlugin, Plugin, PreEnqueuePlugin, ScorePlugin, extends
from policyengine.framework.plugin_entry import NO_ARGUMENTS, Arguments, PluginEntry
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PreBindPlugin, ReservePlugin
from policyengine.plugins.affinity.inter_pod_affinity import InterPodAffinity
from policyengine.plugins.affinity.node_affinity import NodeAffinity
from policyengine.plugins.devices.dynamic_resources import DynamicResources
from policyengine.plugins.node_state.image_locality import ImageLocality
from policyengine.plugins.node_state.node_declared_features import NodeDeclaredFeatures
from policyengine.plugins.node_state.node_name import NodeName
from policyengine.plugins.node_state.node_ports import NodePorts
from policyengine.plugins.node_state.node_unschedulable import NodeUnschedulable
from policyengine.plugins.node_state.taint_toleration import TaintToleration
from policyengine.plugins.preemption.default_preemption import DefaultPreemption
from policyengine.plugins.resources.balanced_allocation import NodeResourcesBalancedAllocation
from policyengine.plugins.resources.fit import NodeResourcesFit
from policyengine.plugins.scheduling_gates import PrioritySort, SchedulingGates
from policyengine.plugins.topology.pod_topology_spread import PodTopologySpread
from policyengine.plugins.volumes.node_volume_limits import NodeVolumeLimits
from policyengine.plugins.volumes.volume_binding import VolumeBinding
from policyengine.plugins.volumes.volume_capacity import volume_binding
from policyengine.plugins.volumes.volume_restrictions import VolumeRestrictions
from policyengine.plugins.volumes.volume_zone import VolumeZone

_LISTED: Final[tuple[tuple[type[Any], int | None], ...]] = (
    (SchedulingGates, None),
    (PrioritySort, None),
    (NodeUnschedulable, None),
    (NodeName, None),
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (NodePorts, None),
    (NodeResourcesFit, 1),
    (VolumeRestrictions, None),
    (NodeVolumeLimits, None),
    (VolumeBinding, 1),
    (VolumeZone, None),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (DynamicResources, 2),
    (DefaultPreemption, None),
    (NodeResourcesBalancedAllocation, 1),
    (ImageLocality, 1),
    (NodeDeclaredFeatures, None),
)
"""A row a plugin: its class, and the weight of its score, None where it has none."""


def _entry(order: int, plugin: type[Any], weight: int | None) -> PluginEntry:
    made_by = volume_binding if plugin is VolumeBinding else plugin
    filters = hasattr(plugin, "filter")
    if not hasattr(plugin, "arguments"):
        return PluginEntry(plugin.name, lambda _: plugin(), NO_ARGUMENTS, weight, filters, order)
    return PluginEntry(plugin.name, made_by, plugin.arguments, weight, filters, order)


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
    return in_tree_profile("default", DEFAULT_SCHEDULER_NAME, sha256(b"").hexdigest(), plugins)


def with_default_profile(profiles: Sequence[Profile]) -> list[Profile]:
    """With kube-scheduler's own as the last, which is there in every cluster, unless a policy serves its name."""
    default = default_profile()
    taken = any(profile.scheduler_name == default.scheduler_name for profile in profiles)
    return [*profiles] if taken else [*profiles, default]
