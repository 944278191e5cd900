"""What the findings of lint say of clusters, by code: what is to be seen in an example of each.

A finding that says sometimes is shown by a cluster in which it is so. One that says never or always is contradicted by
no cluster; it is shown by those that come nearest to it: in `node.podCount > 5 && node.podCount < 3` one in which the
first comparison is true and one in which the second is. How near is the branch distance of search-based testing: of
`&&` the sum of both sides', of `||` the smaller one, of a comparison 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic
from policyengine.language.ir.ir_walk import expressions_in, free_locals, known_amounts, walk
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DOUBLE, Kind
from policyengine.trials.finding_example import NODES, POD, Claim, Want, each, wanted
from policyengine.trials.policy_test import START
from policyengine.trials.policy_test_verdict import Run

FIFTEEN_MINUTES: Final = 15 * 60 * 10**9


def _require(policy: ir.Policy, span: Span) -> tuple[ir.Filter, int]:
    return next(
        (filter_, number)
        for filter_ in policy.filters
        for number, require in enumerate(filter_.requires)
        if not filter_.file and span in (require.condition.span, require.on_error and require.on_error.span)
    )


def _passed(filter_: ir.Filter, count: int | None = None) -> list[Want]:
    return [wanted(require.condition, True) for require in filter_.requires[:count]]


def _never_passes(policy: ir.Policy, finding: Diagnostic) -> Claim:
    filter_, number = _require(policy, finding.span)
    return Claim(each(wanted(filter_.when, True), *_passed(filter_, number + 1)), True, _refused_by(filter_.name))


def _always_true(policy: ir.Policy, finding: Diagnostic) -> Claim:
    filter_, number = _require(policy, finding.span)
    before = _passed(filter_, number) if finding.code == "PE3003" else []
    refused = wanted(filter_.requires[number].condition, False)
    return Claim(each(wanted(filter_.when, True), *before, refused), True, _filters(policy))


def _required_twice(policy: ir.Policy, finding: Diagnostic) -> Claim:
    filter_, number = _require(policy, finding.span)
    first = next(one for one in policy.filters if one.name == finding.message.split("`")[1])
    refused = wanted(filter_.requires[number].condition, False)
    return Claim(each(wanted(filter_.when, True), *_passed(first), refused), True, _filters(policy))


def _one_outcome(policy: ir.Policy, finding: Diagnostic) -> Claim:
    """A condition, or a part of one, that is always true, or never."""
    always = "always true" in finding.message
    part = next(part for part in _parts(policy, finding.span) if part.type == BOOL)
    return Claim(wanted(part, not always), True, _filters(policy))


def _idle_operand(policy: ir.Policy, finding: Diagnostic) -> Claim:
    logic = next(
        part
        for part in _parts(policy, None)
        if isinstance(part, ir.Logic) and any(one.span == finding.span for one in part.operands)
    )
    idle = next(one for one in logic.operands if one.span == finding.span)
    by = [one for one in logic.operands if one.span == finding.related[0].span]
    holds = logic.op == "&&"
    return Claim(each(*(wanted(one, holds) for one in by), wanted(idle, not holds)), True, _filters(policy))


_TRUE_OF_ITSELF = frozenset({"_==_", "_<=_", "_>=_"})


def _known_beforehand(policy: ir.Policy, finding: Diagnostic) -> Claim:
    part = next(_parts(policy, finding.span))
    if not isinstance(part, ir.Call) or part.type != BOOL:
        return Claim(seen=_filters(policy))
    return Claim(Want(part, part.function not in _TRUE_OF_ITSELF), True, _filters(policy))


def _parts(policy: ir.Policy, span: Span | None) -> Iterator[ir.Expr]:
    """The parts of the policy's expressions that stand in a place, or anywhere, and can be asked alone."""
    for whole in expressions_in(replace_tests(policy)):
        for part in walk(whole):
            if span in (None, part.span) and not free_locals(part):
                yield part


def replace_tests(policy: ir.Policy) -> tuple[Any, ...]:
    """The members of a policy that decide something."""
    return tuple(getattr(policy, name) for name in policy.__struct_fields__ if name not in ("tests", "source", "texts"))


def _score(policy: ir.Policy, finding: Diagnostic) -> ir.Score:
    return next(one for one in policy.scores if not one.file and finding.span in (one.value.span, one.span))


def _far_apart(policy: ir.Policy, finding: Diagnostic) -> Claim:
    name = _score(policy, finding).name
    return Claim(apart=(name,), scores=(name,), nodes=2)


def _outweighed(policy: ir.Policy, finding: Diagnostic) -> Claim:
    names = tuple(finding.message.split("`")[1:4:2])
    return Claim(apart=names, scores=names, nodes=2, seen=_goes_to_second)


def _compared(expr: ir.Expr, function: str, value: float) -> Want:
    number = ir.Const(type=expr.type, span=expr.span, value=float(value) if expr.type == DOUBLE else int(value))
    call = ir.Call(
        type=BOOL, span=expr.span, shape=expr.shape, reach=expr.reach, function=function, args=(expr, number)
    )
    return Want(call, True, f" {function.strip('_')} {value:g}")


def _one_of(*parts: Want) -> Want:
    return Want(parts=parts, each=False)


def _cut(policy: ir.Policy, finding: Diagnostic) -> Claim:
    score = _score(policy, finding)
    if score.value.type.kind is Kind.OPTIONAL:
        return Claim(scores=(score.name,), seen=_filters(policy))
    beyond = _one_of(_compared(score.value, "_>_", 100), _compared(score.value, "_<_", 0))
    return Claim(beyond, scores=(score.name,), seen=_filters(policy))


def _saturated(policy: ir.Policy, finding: Diagnostic) -> Claim:
    score = _score(policy, finding)
    assert isinstance(score.value, ir.Call)
    return Claim(_compared(score.value.args[0], "_>_", 100), scores=(score.name,), seen=_filters(policy))


def _truncated(policy: ir.Policy, finding: Diagnostic) -> Claim:
    part = next(part for part in _parts(policy, finding.span) if isinstance(part, ir.Call) and part.function == "_/_")
    rest = ir.Call(type=part.type, span=part.span, shape=part.shape, reach=part.reach, function="_%_", args=part.args)
    return Claim(_compared(rest, "_!=_", 0), scores=tuple(score.name for score in policy.scores))


def _lets_through(policy: ir.Policy, finding: Diagnostic) -> Claim:
    filter_, number = _require(policy, finding.span)
    return Claim(each(wanted(filter_.when, True), Want(filter_.requires[number].condition)), seen=_filters(policy))


def _cannot_fail(policy: ir.Policy, finding: Diagnostic) -> Claim:
    rules: list[tuple[ir.Expr | None, ir.Expr]] = [(one.on_error, one.value) for one in policy.scores]
    rules += [(one.on_error, one.condition) for filter_ in policy.filters for one in filter_.requires]
    value = next(value for on_error, value in rules if on_error is not None and on_error.span == finding.span)
    return Claim(Want(value), True, _filters(policy))


def _named(members: tuple[Any, ...], span: Span) -> Any:
    """The member that stands at a place, or one of whose parts does."""
    names = ("key", "min", "timeout", "delay")
    return next(
        one
        for one in members
        if span in (one.span, *(part.span for name in names if (part := getattr(one, name, None)) is not None))
    )


def _never_applies(policy: ir.Policy, finding: Diagnostic) -> Claim:
    later, earlier = (
        next(gang for gang in policy.gangs if gang.name == name) for name in finding.message.split("`")[1:4:2]
    )
    return Claim(each(wanted(later.when, True), wanted(earlier.when, False)), True, _settled)


def _unbounded_min(policy: ir.Policy, finding: Diagnostic) -> Claim:
    gang = _named(policy.gangs, finding.span)
    return Claim(_one_of(_compared(gang.min, "_>_", 10_000), _compared(gang.min, "_<_", 1)), seen=_settled)


def _refused_at_last(policy: ir.Policy, finding: Diagnostic) -> Claim:
    refused = _told_off_by(_named(policy.permits, finding.span).name)
    return Claim(seen=lambda run: _still_waits(run) or refused(run), after=(FIFTEEN_MINUTES,))


def _refused_in_time(policy: ir.Policy, finding: Diagnostic) -> Claim:
    permit = _named(policy.permits, finding.span)
    return Claim(seen=_told_off_by(permit.name), after=tuple(n * 10**9 for n in (1, 5, 30, 61, 91, 301, 601, 901)))


def _limit_of_no_use(policy: ir.Policy, finding: Diagnostic) -> Claim:
    """A pod that the quota refuses, although all pods together stay within the limit."""
    quota = _named(policy.quotas, finding.span)
    limit, guarantee = known_amounts(quota.limit or ()), known_amounts(quota.guarantee)
    beyond = tuple((name, amount + 1) for name, amount in guarantee.items() if limit.get(name, 0) > amount)
    refused = _told_off_by(quota.name)

    def seen(run: Run) -> bool:
        return refused(run) and all(_asked(run, name) <= most for name, most in limit.items())

    return Claim(wanted(quota.when, True), seen=seen, reads=("requests",), amounts=beyond)


def _asked(run: Run, resource: str, namespace: str = "") -> int:
    """What all pods ask for, or those of a namespace."""
    name, pods = "ephemeral-storage" if resource == "storage" else resource, run.trial.state.view.pods.values()
    return sum(pod.requests.get(name) for pod in pods if namespace in ("", pod.namespace))


def _one_for_all(policy: ir.Policy, finding: Diagnostic) -> Claim:
    """A pod that the quota refuses although the pods of its namespace, itself included, stay within the amounts."""
    quota = next(one for one in policy.quotas if one.by is not None and one.by.span == finding.span)
    bounds = known_amounts(quota.limit or ()) | known_amounts(quota.guarantee)
    refused = _told_off_by(quota.name)

    def seen(run: Run) -> bool:
        namespace = run.trial.state.view.pods[run.uids[POD]].namespace
        return refused(run) and all(_asked(run, name, namespace) <= most for name, most in bounds.items())

    reads, amounts = ("requests", "namespace"), tuple(bounds.items())
    return Claim(wanted(quota.when, True), seen=seen, reads=reads, amounts=amounts)


# --- what comes of it --------------------------------------------------------------------------------------


def _filters(policy: ir.Policy) -> Callable[[Run], bool]:
    """The policy's filters were asked: no plugin refused the node before them."""
    rules = [filter_.name for filter_ in policy.filters]

    def seen(run: Run) -> bool:
        attempt = run.attempt(POD)
        status = None if attempt is None else attempt.refused.get(NODES[0])
        return run.waits(POD) or (attempt is not None and (status is None or status.plugin in rules))

    return seen


def _refused_by(rule: str) -> Callable[[Run], bool]:
    """The filter refused the first node."""

    def seen(run: Run) -> bool:
        attempt = run.attempt(POD)
        return attempt is not None and NODES[0] in attempt.refused and attempt.refused[NODES[0]].plugin == rule

    return seen


def _told_off_by(rule: str) -> Callable[[Run], bool]:
    """A quota or permit refused the pod, and it is on no node."""

    def seen(run: Run) -> bool:
        if run.trial.node_of(run.uids[POD]):
            return False
        lines = [line for line in run.trial.timeline(run.uids[POD]) if line.what in ("refused", "gated")]
        return any(rule == by or rule in by for line in lines if (by := line.details.get("by", "")))

    return seen


def _goes_to_second(run: Run) -> bool:
    """The pod is bound to the second node."""
    return run.trial.node_of(run.uids[POD]) == NODES[1]


def _all_wait(run: Run) -> bool:
    """A gang or a permit holds each of the pods."""
    return all(run.waits(pod) for pod in run.uids)


def _settled(run: Run) -> bool:
    """No pod is refused."""
    return all(run.trial.node_of(uid) or run.waits(pod) for pod, uid in run.uids.items())


def _still_waits(run: Run) -> bool:
    """A gang or a permit holds the pod when a quarter of an hour has passed."""
    return run.trial.now >= START / 1e9 + FIFTEEN_MINUTES / 1e9 and run.waits(POD)


def _popped_first(run: Run, pod: str) -> bool:
    return run.uids[pod] in run.trial.popped[:1]


def _younger_first(run: Run) -> bool:
    """The pod made last is given out first."""
    made = {name: run.trial.cluster.pods[uid].metadata.creation_timestamp or "" for name, uid in run.uids.items()}
    return made["p"] < made["q"] and _popped_first(run, "q")


def _lower_first(run: Run) -> bool:
    """The pod of lower priority is given out first."""
    pods = run.trial.state.view.pods
    uids = run.uids
    return pods[uids["p"]].priority < pods[uids["q"]].priority and _popped_first(run, "p")


# --- by code ----------------------------------------------------------------------------------------------


CLAIMS: Final[Mapping[str, Callable[[ir.Policy, Diagnostic], Claim]]] = {
    "PE3001": _never_passes,
    "PE3002": _always_true,
    "PE3003": _always_true,
    "PE3004": _one_outcome,
    "PE3005": _required_twice,
    "PE3006": _one_outcome,
    "PE3007": _idle_operand,
    "PE3008": _known_beforehand,
    "PE3101": lambda policy, finding: Claim(scores=(_score(policy, finding).name,), nodes=2, seen=_filters(policy)),
    "PE3102": _far_apart,
    "PE3103": _cut,
    "PE3104": _outweighed,
    "PE3105": _saturated,
    "PE3106": _truncated,
    "PE3201": lambda policy, finding: Claim(pods=2, in_order=True, seen=_younger_first, reads=("createdAt",)),
    "PE3202": lambda policy, finding: Claim(pods=2, in_order=True, seen=_settled),
    "PE3203": lambda policy, finding: Claim(pods=2, in_order=True, seen=_lower_first, reads=("priority",)),
    "PE3301": lambda policy, finding: Claim(pods=2, seen=_all_wait),
    "PE3302": _unbounded_min,
    "PE3303": lambda policy, finding: Claim(seen=_still_waits, after=(FIFTEEN_MINUTES,)),
    "PE3304": _never_applies,
    "PE3305": _refused_at_last,
    "PE3306": _refused_in_time,
    "PE3401": _limit_of_no_use,
    "PE3403": _lets_through,
    "PE3404": _cannot_fail,
    "PE3405": _one_for_all,
}
"""Code -> what its finding claims. The others are about the text, not about clusters."""
