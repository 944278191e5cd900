"""Gangs, permits and quotas: what makes pods wait."""

from __future__ import annotations

import math
from collections.abc import Iterator

from policyengine.language import ir
from policyengine.language.diagnostics import wrapped
from policyengine.language.ir.ir_walk import known_amounts
from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule
from policyengine.language.lint.truth import false, not_false

_UID, _NAME, _NAMESPACE = ("pod", "uid"), ("pod", "name"), ("pod", "namespace")


@rule("PE3301", Severity.WARNING)
def gang_of_one(subject: Subject) -> Findings:
    """a gang that can never be complete

    The key is different for every pod (`pod.uid`, `pod.namespace + "/" + pod.name`), so each pod is a gang by itself,
    and `min` is more than one: none of them is ever placed. The key is what the members have in common: a label, the
    owner.

    How it is known: the key holds the uid, or name and namespace with a `/` between; the bounds of `min` go above 1.
    """
    for gang in subject.own(subject.policy.gangs):
        if subject.bounds.of(gang.min).high > 1 and _is_unique(subject, gang.key):
            message = "every pod has a key of its own, so a gang has one member, and `min` may be more"
            yield Finding(message, gang.key.span, steps=subject.bounds.steps(gang.min))


def _is_unique(subject: Subject, expr: ir.Expr) -> bool:
    """Whether no two pods have the same value. A name is used again in another namespace, and two texts that are put
    together without a `/` may be those of another pod."""
    parts = list(_added(subject, expr))
    paths = [part.path if isinstance(part, ir.Field) else () for part in parts]
    if _UID in (paths[0], paths[-1]):  # all are equally long
        return True
    between = parts[1].value if len(parts) == 3 and isinstance(parts[1], ir.Const) else None
    return {paths[0], paths[-1]} == {_NAME, _NAMESPACE} and isinstance(between, str) and "/" in between


def _added(subject: Subject, expr: ir.Expr) -> Iterator[ir.Expr]:
    """The texts that are put together."""
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.LetRef) and (value := subject.let_value(part.name)) is not None:
            pending.append(value)
        elif isinstance(part, ir.Call) and part.function == "_+_":
            pending += part.args[::-1]
        else:
            yield part


_LARGEST = 10_000


@rule("PE3302", Severity.INFO)
def gang_min_unbounded(subject: Subject) -> Findings:
    """a gang whose `min` can exceed its size

    `min` comes from what the author of a pod writes, and nothing bounds it: a label of 1000000 makes its group wait for
    members that never come, and one of 0 or less means nothing. Bound it by what a group may be:
    `clamp(toInt(pod.labels[?"minAvailable"]).orValue(1), 1, 100)`.
    """
    # The API server validates a PodGroup's `min`.
    for gang in subject.own(subject.policy.gangs):
        low, high, _ = subject.bounds.of(gang.min)
        reads = {path[0] for path in subject.paths_in(gang.min)}
        if "pod" in reads and (high > _LARGEST or low < 0):
            fix = wrapped(gang.min.span, "clamp(", ", 1, 100)")
            yield Finding("nothing bounds `min`: it can exceed the gang's size", gang.min.span, fix)


_LONGEST = 15 * 60 * 10**9
"""Nanoseconds: maxTimeout of kube-scheduler (pkg/scheduler/framework/runtime/framework.go)."""


@rule("PE3303", Severity.WARNING)
def long_gang_timeout(subject: Subject) -> Findings:
    """a gang that may hold room for a long time

    Until `timeout` the members placed so far keep what they have reserved, whether the rest comes or not. With more
    than 15 minutes, the longest that kube-scheduler lets a pod wait at Permit, or with a `timeout` that the author of a
    pod sets without a bound, a group that never completes keeps nodes from all others. Bound it by `min(…, 10min)`.
    """
    # A PodGroup's timeout is set by those who may write PodGroups, and trusted.
    for gang in subject.own(subject.policy.gangs):
        longest = subject.bounds.of(gang.timeout).high
        reads = {path[0] for path in subject.paths_in(gang.timeout)}
        if longest > _LONGEST and (math.isfinite(longest) or "pod" in reads):
            yield Finding(f"`timeout` {_bound(longest)}: the gang holds what it reserved as long", gang.timeout.span)


def _bound(longest: float) -> str:
    return "has no bound" if math.isinf(longest) else f"may be {longest / 60e9:g} minutes"


@rule("PE3304", Severity.WARNING)
def shadowed_gang(subject: Subject) -> Findings:
    """a gang that never applies

    Of the gangs of a policy the first whose `when` holds applies. One before this takes every pod that this one is for:
    put the more special one first.

    How it is known: the earlier one has no `when`; or that is taken to be false and the later one's to be true or to
    fail, and nothing is left of one of their terms (PE3001).
    """
    gangs = subject.own(subject.policy.gangs)
    for number, gang in enumerate(gangs[:40]):
        given = [not_false(gang.when)] if gang.when is not None else []
        for earlier in gangs[:number]:
            if earlier.when is None or subject.truth.impossible(*given, false(earlier.when)):
                related = (Related(earlier.span, "this one applies"),)
                every = (Related(earlier.span, "has no `when`: it applies to every pod"),)
                steps = every if earlier.when is None else subject.truth.proof()
                message = f"`{gang.name}` never applies: `{earlier.name}` takes its pods"
                yield Finding(message, gang.span, None, related, steps)
                break


@rule("PE3305", Severity.WARNING)
def long_permit(subject: Subject) -> Findings:
    """a permit that holds a pod for more than 15 minutes

    While a pod is held its room is reserved for it. kube-scheduler lets no plugin hold a pod for longer than 15
    minutes, and refuses it then; so does this scheduler where a permit gives no `timeout`.
    """
    for permit in subject.own(subject.policy.permits):
        for name, value in (("delay", permit.delay), ("timeout", permit.timeout)):
            longest = subject.bounds.of(value).high if value is not None else 0.0
            if value is not None and longest > _LONGEST:
                yield Finding(f"`{name}` {_bound(longest)}; a pod is held for 15 minutes at most", value.span)


@rule("PE3306", Severity.WARNING)
def permit_delay_over_timeout(subject: Subject) -> Findings:
    """a permit whose delay outlasts its timeout

    At `timeout` a pod that is still held is refused. A `delay` that is longer never ends in time: every pod the permit
    holds is refused.

    How it is known: neither can fail, and the least that `delay` may be is no less than the most `timeout` may be.
    """
    for permit in subject.own(subject.policy.permits):
        if permit.delay is None or permit.timeout is None:
            continue
        if subject.bounds.may_fail(permit.delay) or subject.bounds.may_fail(permit.timeout):
            continue
        if subject.bounds.of(permit.delay).low >= subject.bounds.of(permit.timeout).high:
            related = (Related(permit.timeout.span, "refused here"),)
            steps = (*subject.bounds.steps(permit.delay), *subject.bounds.steps(permit.timeout))
            yield Finding("the pod is refused before the delay is over", permit.delay.span, None, related, steps)


@rule("PE3405", Severity.WARNING)
def quota_of_one_key(subject: Subject) -> Findings:
    """a quota with a key that is the same for all pods

    `by` makes a quota for each value of its key. One that reads nothing of the pod has a single value: leave `by` out,
    or name what tells the pods apart, such as `by pod.namespace`.

    By definition: the key reads no field of the pod, through lets neither.
    """
    for quota in subject.own(subject.policy.quotas):
        if quota.by is not None and all(path[0] != "pod" for path in subject.paths_in(quota.by)):
            yield Finding(f"`{quota.name}` has one key for all pods", quota.by.span)


@rule("PE3401", Severity.WARNING)
def quota_unreachable_limit(subject: Subject) -> Findings:
    """a quota whose limit is never reached

    Over `guarantee` a pod is admitted only where the quota may `borrow`. Without it the guarantee is the limit, and a
    higher `limit` changes nothing. Write `borrow: true`, or leave the limit out.

    By definition: `borrow` is absent or `false`, and both amounts are literals, of which the limit is the larger.
    """
    for quota in subject.own(subject.policy.quotas):
        never = quota.borrow is None or (isinstance(quota.borrow, ir.Const) and quota.borrow.value is False)
        guarantee, limit = known_amounts(quota.guarantee), known_amounts(quota.limit or ())
        if never and any(limit[name] > guarantee[name] for name in limit.keys() & guarantee.keys()):
            message = f"`{quota.name}` does not borrow, so its limit above the guarantee is never reached"
            yield Finding(message, quota.span)
