"""What runs beside the rules: the base, `use` and `disable`."""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.diagnostics import listed
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, removal, rule
from policyengine.language.syntax import Span


def _in_base(subject: Subject, name: str) -> bool:
    """Whether the base runs the plugin."""
    facts = subject.plugins.get(name)
    if facts is None or not facts.in_base or subject.policy.base == "none":
        return False
    return subject.policy.base == "kubernetes" or facts.filters or not facts.scores


def _base_span(subject: Subject) -> Span:
    """Where the base is named; the policy's name where it is not."""
    found = subject.written_as(syntax.Base)
    return found[0].name.span if found else subject.written.name.span


def _disable_of(subject: Subject, name: str) -> Span:
    """Where a plugin is disabled."""
    for member in subject.written_as(syntax.Disable):
        if member.plugin.text == name:
            return member.plugin.span
    return subject.written.name.span


@rule("PE3601", Severity.WARNING)
def default_scheduler(subject: Subject) -> Findings:
    """a policy for `default-scheduler`

    Pods that name no scheduler belong to `default-scheduler`, which the control plane's kube-scheduler serves. Where it
    still runs, two schedulers bind the same pods, and each counts on room that the other gives away. Serve another
    name, and set `schedulerName` on the pods; or make sure that kube-scheduler is off, and allow this finding.
    """
    for member in subject.written_as(syntax.Scheduler):
        if member.name.text == "default-scheduler":
            yield Finding("kube-scheduler serves `default-scheduler`: two schedulers would race", member.name.span)


_FIT = "NodeResourcesFit"
_ROOM = frozenset({("node", "free"), ("node", "used")})


@rule("PE3602", Severity.WARNING)
def can_overcommit(subject: Subject) -> Findings:
    """a policy that can overcommit nodes

    Nothing compares what a pod asks for with what a node has left: `base none` starts without NodeResourcesFit, or it
    is disabled. The kubelet refuses pods beyond its allocatable resources (`OutOfcpu`, `OutOfmemory`), and they are
    lost. Write `use NodeResourcesFit`, or a filter over `node.free`.
    """
    policy = subject.policy
    if any(use.name == _FIT for use in policy.uses) or _looks(subject):
        return
    if policy.base == "none" or _FIT in policy.disabled:
        place = _base_span(subject) if policy.base == "none" else _disable_of(subject, _FIT)
        yield Finding("nothing keeps pods within a node's resources: it can overcommit", place)


def _looks(subject: Subject) -> bool:
    return any(
        path[:2] in _ROOM
        for filter_ in subject.policy.filters
        for require in filter_.requires
        for path in subject.paths_in(require.condition)
    )


_ASKED = ("NodeAffinity", "NodeName", "NodePorts", "TaintToleration")


@rule("PE3603", Severity.WARNING)
def kubelet_refuses(subject: Subject) -> Findings:
    """a disabled filter that the kubelet asks again

    The kubelet admits a pod only where NodeAffinity, NodeName, NodePorts and TaintToleration (of NoExecute taints) let
    it pass, whoever placed it. Without the filter the scheduler binds pods that the kubelet then fails
    (pkg/kubelet/lifecycle/predicate.go).
    """
    policy = subject.policy
    for name in _ASKED:
        if name in policy.disabled and policy.base != "none":
            message = f"the kubelet asks `{name}` again and fails the pods that this lets pass"
            yield Finding(message, _disable_of(subject, name))
    used = {use.name for use in policy.uses}
    missing = [name for name in _ASKED if name not in used]
    if policy.base == "none" and missing:
        yield Finding(f"the kubelet fails pods that {listed(missing)} would refuse", _base_span(subject))


@rule("PE3604", Severity.WARNING)
def redundant_disable(subject: Subject) -> Findings:
    """a `disable` of what does not run

    The base of the policy does not have the plugin: `base none` has none, `base filters` no plugin that only scores.
    `--fix` removes the line.
    """
    for member in subject.written_as(syntax.Disable):
        if not _in_base(subject, member.plugin.text):
            fix = removal(subject, member, f"remove `disable {member.plugin.text}`")
            yield Finding(f"`base {subject.policy.base}` has no `{member.plugin.text}` to disable", member.span, fix)


@rule("PE3605", Severity.WARNING)
def redundant_use(subject: Subject) -> Findings:
    """a `use` that changes nothing

    The base of the policy runs the plugin already, with the same weight and the same arguments. `--fix` removes the
    line.
    """
    uses = {use.span: use for use in subject.policy.uses}
    for member in subject.written_as(syntax.Use):
        use = uses.get(member.span)
        if use is None or use.arguments or not _in_base(subject, use.name):
            continue
        facts = subject.plugins[use.name]
        same_weight = use.weight is None or use.weight == facts.default_weight
        scored = subject.policy.base == "kubernetes" or not facts.scores
        if same_weight and scored:
            fix = removal(subject, member, f"remove `use {use.name}`")
            yield Finding(f"`{use.name}` runs like this in `base {subject.policy.base}` already", member.span, fix)
