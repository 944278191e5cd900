"""What a policy says about a pod on its chosen node: log lines at the extension points, annotations of the binding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from policyengine.framework.plugin import Plugin

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot

NO_NODE: Final = ""
"""The chosen node before the choice."""


class LogRule(Protocol):
    """`on POINT [when e] log "…"`."""

    @property
    def point(self) -> str:
        """The extension point, as the policy names it: `preFilter`, `postBind`, …"""

    def line(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str | None:
        """The line to log; None where the rule does not apply."""


@runtime_checkable
class LoggingPlugin(Plugin, Protocol):
    """Has something logged at extension points: it informs, and decides nothing."""

    @property
    def logs(self) -> Sequence[LogRule]:
        """A rule for each line."""


class AnnotationRule(Protocol):
    """`bind { annotations: { key: "…" } }`, one entry of it."""

    @property
    def key(self) -> str:
        """The annotation's key."""

    def value(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str:
        """What is written."""
