"""What is said about a pod on its chosen node: log lines at the extension points, and how it is bound.

Bind and PostBind write nothing themselves. What a Bind plugin answers goes into the binding that is posted to the API
server; another way to bind is an extender with a `bindVerb`, which goes before all of them, as with kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.plugin import Plugin
from policyengine.framework.reservation import Announcement
from policyengine.framework.status import Status

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


class AnnotationRule(NamedTuple):
    """`bind { annotations: { key: "…" } }`, one entry of it."""

    key: str
    """The annotation's key."""
    value: Callable[[PodInfo, str, Snapshot], str]
    """(pod, name of its node, snapshot) -> what is written."""


class Binding(NamedTuple):
    """A Bind plugin's answer."""

    status: Status
    """SUCCESS: the pod is bound as this says. SKIP: the next plugin is asked. Else why it is not bound."""
    annotations: Mapping[str, str] = {}
    """Written to the pod with the binding, over those of the policy's `bind`."""


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Asked in the profile's order once all is prepared; the first that does not skip decides. Where all skip, and
    where there is none, the pod is bound as kube-scheduler's DefaultBinder binds it."""

    def bind(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Binding:
        """How the pod is bound."""


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Informs: told of each pod that was bound. All are asked; none can change anything."""

    def post_bind(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Announcement | None:
        """The event that the pod's owner is told, if any."""
