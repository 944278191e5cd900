"""`podGroup(name)`: a PodGroup that the pod being placed need not belong to.

The checker adds the PodGroups that there are, which only the compiler knows, and the pod's namespace. The variable
`podGroup` is another thing: functions and variables have names of their own, as in CEL.
"""

from __future__ import annotations

from typing import Protocol

from policyengine.language.functions.bounds import Unbounded
from policyengine.language.functions.table import Cost, Function, Style, function


class Groups(Protocol):
    """The PodGroups that there are."""

    def named(self, namespace: str, name: str) -> object | None:
        """The one of that name, None without one."""


def _pod_group(groups: Groups, namespace: str, name: str) -> object | None:
    return groups.named(namespace, name)


FUNCTIONS: tuple[Function, ...] = (
    function(
        "podGroup",
        Style.GLOBAL,
        "the PodGroup of that name in the pod's namespace, none where there is no such object",
        {"podGroup, string, string -> optional(podGroup)": _pod_group},
        bounds=Unbounded("an object"),
        cost=Cost("lookup", 20),
        mutants=[],
        added=2,
    ),
)
