"""`params.yaml` in a ConfigMap manifest, or `spec.params` of a SchedulingPolicy: the values held against the params of
the policies beside them, as when the object is loaded."""

from __future__ import annotations

from policyengine.compiler.front import WRONG_PARAM, Checked
from policyengine.compiler.params import with_params, wrong_values
from policyengine.kube.policies.params_file import read_params
from policyengine.language.diagnostics import Diagnostic, Severity
from policyengine.language.policy_text import PolicyText
from policyengine.language.syntax import Span
from policyengine.plain_yaml import PlainYamlError


def laid_over(checked: Checked, params: PolicyText) -> tuple[Checked, list[Diagnostic]]:
    """The policies with these values for their params, and what is wrong with the values, at their places in the
    manifest."""
    try:
        given = read_params(params.source.text)
    except PlainYamlError as error:
        start = params.source.line_start(error.line) if error.line else 0
        name = params.source.file.rpartition(" ")[2].rpartition("/")[2]
        return checked, [_finding(params, f"`{name}` {error}", Span(start, start))]
    values = {name: one.value for name, one in given.items()}
    known = [param for policy in checked.policies for param in policy.params]
    wrong = wrong_values(known, values)
    if not is_whole(checked):  # a policy with errors may have the others
        wrong = {name: message for name, message in wrong.items() if any(param.name == name for param in known)}
    good = {name: value for name, value in values.items() if name not in wrong}
    findings = []
    for name, message in wrong.items():
        start = params.source.line_start(given[name].line) + given[name].column - 1
        findings.append(_finding(params, message, Span(start, start + len(name))))
    return checked._replace(policies=[with_params(policy, good) for policy in checked.policies]), findings


def is_whole(checked: Checked) -> bool:
    """Whether no policy of the files is left out for its errors."""
    return len(checked.policies) == sum(len(tree.policies) for tree in checked.trees)


def _finding(params: PolicyText, message: str, span: Span) -> Diagnostic:
    found = Diagnostic(WRONG_PARAM, Severity.ERROR, message, params.shown.file, span)
    return params.placed(found)
