"""a resource that no node has

Beside `cpu`, `memory`, `ephemeral-storage`, `pods` and `hugepages-…` every resource is named with a domain:
`nvidia.com/gpu`. One without is 0, or absent, on every node. cpu, memory and storage are fields:
`pod.requests.cpu`.
"""

from __future__ import annotations

from policyengine.language.lint.labels import keys_in
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_NATIVE = frozenset({"cpu", "memory", "storage", "ephemeral-storage", "pods"})
_RESOURCES = ("requests", "limits", "allocatable", "capacity", "used", "free")


@rule("PE3515", Severity.WARNING, __doc__)
def unknown_resource(subject: Subject) -> Findings:
    """Keys of amounts without a domain."""
    for field in _RESOURCES:
        for key in keys_in(subject, field):
            if "/" not in key.text and key.text not in _NATIVE and not key.text.startswith("hugepages-"):
                message = f"no node has a resource `{key.text}`: extended resources have a domain, as `nvidia.com/gpu`"
                yield Finding(message, key.span)
