"""a policy for `default-scheduler`

Pods that name no scheduler belong to `default-scheduler`, which the control plane's kube-scheduler serves. Where it
still runs, two schedulers bind the same pods, and each counts on room that the other gives away. Serve another name,
and set `schedulerName` on the pods; or make sure that kube-scheduler is off, and allow this finding.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3601", Severity.WARNING, __doc__)
def default_scheduler(subject: Subject) -> Findings:
    """`scheduler "default-scheduler"`."""
    for member in subject.written_as(syntax.Scheduler):
        if member.name.text == "default-scheduler":
            yield Finding("kube-scheduler serves `default-scheduler`: two schedulers would race", member.name.span)
