"""a disabled filter that the kubelet asks again

The kubelet admits a pod only where NodeAffinity, NodeName, NodePorts and TaintToleration (of NoExecute taints) let it
pass, whoever placed it. Without the filter the scheduler binds pods that the kubelet then fails
(pkg/kubelet/lifecycle/predicate.go).
"""

from __future__ import annotations

from policyengine.language.lint.plugin_members import base_span, disable_of
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_ASKED = ("NodeAffinity", "NodeName", "NodePorts", "TaintToleration")


@rule("PE3603", Severity.WARNING, __doc__)
def kubelet_refuses(subject: Subject) -> Findings:
    """Such filters that are disabled, or left out of `base none`."""
    policy = subject.policy
    for name in _ASKED:
        if name in policy.disabled and policy.base != "none":
            message = f"the kubelet asks `{name}` again and fails the pods that this lets pass"
            yield Finding(message, disable_of(subject, name))
    used = {use.name for use in policy.uses}
    missing = [name for name in _ASKED if name not in used]
    if policy.base == "none" and missing:
        shown = ", ".join(f"`{name}`" for name in missing)
        yield Finding(f"the kubelet fails pods that {shown} would refuse", base_span(subject))
