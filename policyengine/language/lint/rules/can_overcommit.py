"""a policy that can overcommit nodes

Nothing compares what a pod asks for with what a node has left: `base none` starts without NodeResourcesFit, or it is
disabled. The kubelet refuses pods beyond its allocatable resources (`OutOfcpu`, `OutOfmemory`), and they are lost.
Write `use NodeResourcesFit`, or a filter over `node.free`.
"""

from __future__ import annotations

from policyengine.language.lint.plugin_members import base_span, disable_of
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

FIT = "NodeResourcesFit"
_ROOM = frozenset({("node", "free"), ("node", "used")})


@rule("PE3602", Severity.WARNING, __doc__)
def can_overcommit(subject: Subject) -> Findings:
    """Policies without the plugin and without a filter that looks at what is left."""
    policy = subject.policy
    if any(use.name == FIT for use in policy.uses) or _looks(subject):
        return
    if policy.base == "none":
        yield Finding("nothing keeps pods within a node's resources: it can overcommit", base_span(subject))
    elif FIT in policy.disabled:
        yield Finding("nothing keeps pods within a node's resources: it can overcommit", disable_of(subject, FIT))


def _looks(subject: Subject) -> bool:
    return any(
        path[:2] in _ROOM
        for filter_ in subject.policy.filters
        for require in filter_.requires
        for path in subject.readings.of(require.condition).paths
    )
