"""Whether a pod is like the one that a streak began with: whether it has its signatures, for every plugin.

Most pods of a streak are of one template, and the signatures of most plugins follow from that (`TemplateReader`, and
`SelectivePlugin` for pods that do not concern it): a few identities are compared for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.plugin import SelectivePlugin, extends

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


class Likeness:
    """The signatures of the first pod, whether a plugin is concerned or not: another pod may concern others."""

    __slots__ = ("_first", "_of_pod", "_of_template")

    def __init__(self, first: PodInfo) -> None:
        self._first = first
        self._of_pod, self._of_template = _Signatures(), _Signatures()
        """The latter are the same for all pods of one template."""

    def note(self, cache: ColumnCache, signature: Hashable) -> None:
        """The first pod has this signature for a plugin."""
        is_of_template = cache.of_template or not _concerns(cache.plugin, self._first)
        (self._of_template if is_of_template else self._of_pod).add(cache.signature, signature)

    def is_shared_by(self, pod: PodInfo) -> bool:
        """Whether the pod has the same signatures."""
        first = self._first
        is_of_template = (
            pod.shape is first.shape
            and pod.labels is first.labels
            and pod.namespace is first.namespace
            and pod.owner_references is first.owner_references
        )
        if not is_of_template and (pod.shape.problem is not None or not self._of_template.are_of(pod)):
            return False
        return self._of_pod.are_of(pod)


class _Signatures:
    """How some plugins' signatures of a pod are had, and what they are."""

    __slots__ = ("_of", "_values")

    def __init__(self) -> None:
        self._of: list[Callable[[PodInfo], Hashable]] = []
        self._values: list[Hashable] = []

    def add(self, of: Callable[[PodInfo], Hashable], value: Hashable) -> None:
        """One more plugin."""
        self._of.append(of)
        self._values.append(value)

    def are_of(self, pod: PodInfo) -> bool:
        """Whether the pod has the same."""
        return [of(pod) for of in self._of] == self._values


def _concerns(plugin: object, pod: PodInfo) -> bool:
    return not extends(plugin, SelectivePlugin) or plugin.concerns(pod.shape)
