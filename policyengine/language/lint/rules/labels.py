"""Keys of labels, annotations and resources, and the labels that Kubernetes defines."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language import syntax
from policyengine.language.checking.setting_checks import wrong_key
from policyengine.language.diagnostics import replacing
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Lookup, Severity, Subject, rule
from policyengine.suggestion import closest

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


_OURS = (".kubernetes.io", ".k8s.io")


@rule("PE3512", Severity.WARNING)
def misspelt_label(subject: Subject) -> Findings:
    """a label that nearly is a well-known one

    `topology.kubernetes.io/zones` is no label that anything sets: on every node it is absent, and the rule decides by
    its default. The message names the label that was probably meant.
    """
    for key in keys_in(subject, "labels"):
        if key.text in WELL_KNOWN or key.text in DEPRECATED:
            continue
        meant = _meant(key.text)
        if meant is not None:
            fix = Fix(f"write `{meant}`", (Edit(key.span, f'"{meant}"'),))
            yield Finding(f"nothing sets the label `{key.text}`; did you mean `{meant}`?", key.span, fix)


def _meant(text: str) -> str | None:
    domain, _, name = text.rpartition("/")
    known = [label for label in WELL_KNOWN if "/" in label]
    close = closest(text, known) if domain else None
    if close is None:
        return None
    near, _, named = close.rpartition("/")
    # Of a third party's domain only the domain tells: `topology.example.com/zone` is theirs.
    ours = f".{domain}".endswith(_OURS) or closest(domain, [near]) == near
    return close if ours and (near == domain or named == name) else None


@rule("PE3513", Severity.WARNING)
def deprecated_label(subject: Subject) -> Findings:
    """a label that Kubernetes has replaced

    The label was deprecated and is no longer set on new nodes, or will not be. An editor offers to write its successor;
    `--fix` does not, as there may be objects with one of the two only.
    """
    for key in keys_in(subject, "labels"):
        successor = DEPRECATED.get(key.text)
        if successor is not None:
            message = f"`{key.text}` is deprecated: it is `{successor}` now"
            yield Finding(message, key.span, replacing(key.span, f'"{successor}"'))


@rule("PE3514", Severity.WARNING)
def impossible_label(subject: Subject) -> Findings:
    """a label key that no label can have

    Keys of labels and annotations are a name of at most 63 letters, digits, `-`, `_` and `.`, after a DNS domain and
    `/` where there is one. Any other is absent on everything, whatever is looked up.
    """
    for field in ("labels", "annotations"):
        for key in keys_in(subject, field):
            domain, slash, name = key.text.rpartition("/")
            lower = domain.lower() if field == "annotations" else domain  # annotations' are lowered first
            if wrong_key(f"{lower}{slash}{name}"):
                yield Finding(f"no {field.removesuffix('s')} can have the key `{key.text}`", key.span)


_NATIVE = frozenset({"cpu", "memory", "storage", "ephemeral-storage", "pods"})
_RESOURCES = ("requests", "limits", "allocatable", "capacity", "used", "free")


@rule("PE3515", Severity.WARNING)
def unknown_resource(subject: Subject) -> Findings:
    """a resource that no node has

    Beside `cpu`, `memory`, `ephemeral-storage`, `pods` and `hugepages-…` every resource is named with a domain:
    `nvidia.com/gpu`. One without is 0, or absent, on every node. cpu, memory and storage are fields:
    `pod.requests.cpu`.
    """
    for field in _RESOURCES:
        for key in keys_in(subject, field):
            if "/" not in key.text and key.text not in _NATIVE and not key.text.startswith("hugepages-"):
                message = f"no node has a resource `{key.text}`: extended resources have a domain, as `nvidia.com/gpu`"
                yield Finding(message, key.span)


@rule("PE3516", Severity.WARNING)
def annotation_domain(subject: Subject) -> Findings:
    """an annotation that is written without a domain

    Keys without a domain are for users' own annotations; what a component writes carries the domain of its owner, so
    that two never write the same key: `example.com/placed-by`.
    """
    for member in subject.written_as(syntax.BindAnnotations):
        for name, _ in member.annotations:
            if "/" not in name.text:
                yield Finding(f"`{name.text}` has no domain: write `example.com/{name.text}`", name.span)
