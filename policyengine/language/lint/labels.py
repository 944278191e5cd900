"""Labels that Kubernetes defines (well-known labels, annotations and taints), and where a policy names keys."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language.lint.subject import Lookup, Subject

WELL_KNOWN = frozenset(
    {
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/metadata.name",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
        "node.kubernetes.io/exclude-from-external-load-balancers",
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/worker",
        "node-restriction.kubernetes.io",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "app.kubernetes.io/component",
        "app.kubernetes.io/created-by",
        "app.kubernetes.io/instance",
        "app.kubernetes.io/managed-by",
        "app.kubernetes.io/name",
        "app.kubernetes.io/part-of",
        "app.kubernetes.io/version",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "statefulset.kubernetes.io/pod-name",
        "service.kubernetes.io/headless",
        "pod-template-hash",
        "controller-revision-hash",
    }
)
DEPRECATED = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
"""Deprecated label -> its successor."""


def keys_in(subject: Subject, field: str) -> Iterator[Lookup]:
    """The literal keys that are looked up in maps of a name (`labels`, `requests`) of pods and nodes."""
    return (lookup for lookup in subject.lookups if lookup.field == field)
