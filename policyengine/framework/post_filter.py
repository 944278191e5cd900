"""The PostFilter extension point: a pod fits nowhere, can room be made for it?

A PostFilter plugin only says what would help; it evicts nobody. The core turns the answer into actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.plugin import FilterPlugin, Plugin
from policyengine.framework.reservation import ObjectPatch
from policyengine.framework.status import Code, State, Status


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter plugin found."""

    status: Status
    """SUCCESS: room can be made. UNSCHEDULABLE: it cannot, the reasons end the FailedScheduling message."""
    nominated_node_name: str | None = None
    """The node on which room is made; "" ends an earlier nomination, None leaves it as it is."""
    victims: tuple[PodInfo, ...] = ()
    """Who has to go for it, in order."""
    why: str = ""
    """Why this node, and so these victims, for people; empty where nothing was chosen."""
    patches: tuple[ObjectPatch, ...] = ()
    """What is written at once; the pod is tried again when that is seen, or has failed."""


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Asked where no node passed the filters, in the profile's order, until one succeeds."""

    def post_filter(
        self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView
    ) -> PostFilterResult:
        """Say what would help. `diagnosis` is the verdict on every node; `view` may be asked hypothetically, and is
        left as it was. `now` is in seconds since the epoch."""


@runtime_checkable
class SumsReader(FilterPlugin, Protocol):
    """A filter that reads of the pods on a row no more than their sums: `requested` and `pod_count`.

    Then what it would say without some of them can be asked of a table whose sums are lower
    (`NodeTable.with_own_sums`), for all rows at once.
    """

    @property
    def reads_only_sums(self) -> bool:
        """Whether that is so."""


@runtime_checkable
class EvictionBlind(FilterPlugin, Protocol):
    """A filter that can tell whether evictions are nothing to it."""

    def is_eviction_blind(self, state: State) -> bool:
        """Whether no verdict changes, in any row, whichever pods are taken off the nodes."""


@runtime_checkable
class EasedByEvictions(FilterPlugin, Protocol):
    """A filter that refuses, once pods were taken off the nodes, no node that it let pass before."""

    @property
    def eased_by_evictions(self) -> bool:
        """Whether that is so."""


def run_post_filters(
    plugins: Sequence[PostFilterPlugin],
    pod: PodInfo,
    diagnosis: Diagnosis,
    evaluator: Evaluator,
    view: ClusterView,
) -> PostFilterResult:
    """Ask the plugins in order (RunPostFilterPlugins, framework/runtime/framework.go, v1.36).

    The first that succeeds counts, and the first that says UNSCHEDULABLE_AND_UNRESOLVABLE or fails. Otherwise the
    reasons of all come together, with the last nomination that one of them spoke of.
    """
    reasons: list[str] = []
    patches: tuple[ObjectPatch, ...] = ()
    nominated: str | None = None
    first = ""
    for plugin in plugins:
        result = plugin.post_filter(pod, diagnosis, evaluator, view)
        status = result.status
        patches += result.patches
        if status.code is not Code.UNSCHEDULABLE:
            return replace(result, status=status.by(plugin.name), patches=patches)
        if result.nominated_node_name is not None:
            nominated = result.nominated_node_name
        first = first or plugin.name
        reasons += status.reasons
    return PostFilterResult(Status(Code.UNSCHEDULABLE, tuple(reasons), first), nominated, patches=patches)
