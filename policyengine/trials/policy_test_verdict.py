"""Whether an expectation of a test holds, and if not: what happened instead, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.checking.test_checks import QUESTIONS
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.ir.ir_walk import walk
from policyengine.language.scalar_evaluator import Closure, Names, evaluated
from policyengine.language.syntax import Span
from policyengine.language.values import EvaluationError, display, optional
from policyengine.plugins.resources.fit import TOO_MANY_PODS
from policyengine.trials.trial import Trial
from policyengine.trials.trial_attempts import Attempt, attempted

_SHOWN: Final = 3
"""Nodes whose totals are shown."""


@dataclass(slots=True)
class Run:
    """What the expectations of a test are held against."""

    trial: Trial
    evaluator: Evaluator
    """Of the policy as it serves now."""
    uids: Mapping[str, str]
    """Pod's name in the test -> UID."""
    policy: ir.Policy
    params: Mapping[str, object]
    """The params that the test gives."""
    last: dict[str, Attempt] = field(default_factory=dict)
    """UID -> the pod's last attempt."""

    def attempt(self, pod: str) -> Attempt | None:
        """The pod's last attempt; for one that was given on a node, as if it were to be placed now."""
        uid = self.uids[pod]
        if uid in self.last or uid in self.trial.popped or not self.trial.node_of(uid):
            return self.last.get(uid)
        return attempted(self.evaluator, self.trial.state, uid, [uid])

    def waits(self, pod: str) -> bool:
        """Whether a gang or a permit holds the pod."""
        return self.trial.state.place(self.uids[pod]) in ("held", "waiting at permit")


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that did not hold, or why a test could not be run."""

    message: str
    """What was expected and what happened: lower case, one sentence."""
    span: Span
    """The step, in the test's source."""
    details: tuple[str, ...] = ()
    """Why: the refusals, the best nodes' totals, the pod's timeline; a line each."""


def verdict(run: Run, step: ir_test.Step) -> Failure | None:
    """None where the expectation holds."""
    return _VERDICTS[type(step)](run, step)


def _unmet(run: Run, step: Any, expected: str, happened: str, node: str | None = None) -> Failure:
    return Failure(f"expected {expected}, but {happened}", step.span, tuple(_why(run, step.pod, node)))


# --- placement and order ---------------------------------------------------------------------------------


def _on(run: Run, step: ir_test.ExpectOn) -> Failure | None:
    if run.trial.node_of(run.uids[step.pod]) == step.node:
        return None
    return _unmet(run, step, f"`{step.pod}` on `{step.node}`", _whereabouts(run, step.pod), step.node)


def _before(run: Run, step: ir_test.ExpectBefore) -> Failure | None:
    names = {uid: name for name, uid in run.uids.items()}
    order = [names[uid] for uid in dict.fromkeys(run.trial.popped) if uid in names]
    missing = next((name for name in (step.pod, step.other) if name not in order), None)
    if missing is None and order.index(step.pod) < order.index(step.other):
        return None
    happened = f"`{step.other}` was popped first"
    if missing is not None:
        happened = f"`{missing}` was never popped: {_whereabouts(run, missing)}"
    message = f"expected `{step.pod}` before `{step.other}`, but {happened}"
    return Failure(message, step.span, (f"popped: {', '.join(f'`{name}`' for name in order) or 'none'}",))


def _waits(run: Run, step: ir_test.ExpectWaits) -> Failure | None:
    if run.waits(step.pod):
        return None
    return _unmet(run, step, f"`{step.pod}` to wait for a gang or at a permit", _whereabouts(run, step.pod))


# --- refusals --------------------------------------------------------------------------------------------


def _rejected(run: Run, step: ir_test.ExpectRejected) -> Failure | None:
    expected = f"`{step.pod}` rejected" + (f" on `{step.node}`" if step.node else "")
    expected += f" by `{step.rule}`" if step.rule else ""
    expected += f" because of `{step.reason}`" if step.reason else ""
    found = refusals(run, step)
    if isinstance(found, str):
        return _unmet(run, step, expected, found, step.node)
    by = [(rule, reasons) for rule, reasons in found if step.rule is None or rule == step.rule]
    if not by:
        said = ", ".join(f"`{rule}`" for rule in dict.fromkeys(rule for rule, _ in found))
        return _unmet(run, step, expected, f"it was rejected by {said}", step.node)
    if step.reason is None or any(step.reason in reason for _, reason in by):
        return None
    said = "; ".join(dict.fromkeys(reason for _, reason in by))
    return _unmet(run, step, expected, f"the reason is `{said}`", step.node)


def refusals(run: Run, step: ir_test.ExpectRejected) -> list[tuple[str, str]] | str:
    """(plugin or rule, reason) of what refused the pod there; or why nothing did."""
    attempt = run.attempt(step.pod)
    if step.node is not None:
        if attempt is None:
            return f"it was never tried: {_whereabouts(run, step.pod)}"
        status = attempt.refused.get(step.node)
        if status is None:
            return f"it was not: `{step.node}` let it pass"
        return [(status.plugin, reason) for reason in status.reasons or ("",)]
    if run.trial.node_of(run.uids[step.pod]):
        return _whereabouts(run, step.pod)
    found = [
        (status.plugin, reason)
        for status in (attempt.refused.values() if attempt is not None and not attempt.feasible else ())
        for reason in status.reasons or ("",)
    ]
    return found + _told(run, step.pod) or f"it was not: {_whereabouts(run, step.pod)}"


def _told(run: Run, pod: str) -> list[tuple[str, str]]:
    """What refused the pod outside the filters: a gate, a quota, a plugin at Reserve or Permit."""
    for line in reversed(run.trial.timeline(run.uids[pod])):
        if line.what in ("refused", "gated"):
            by = line.details.get("by", "")
            names = sorted(by) or ["nobody"] if isinstance(by, frozenset) else [by]  # where there is no node at all
            return [(name, str(line.details.get("message", ""))) for name in names]
        if line.what in ("queued", "woken", "reserved", "bound") and line.details.get("place") != "backoff":
            break  # in backoff it has not been tried again
    return []


# --- numbers, gangs, conditions --------------------------------------------------------------------------


def _number(run: Run, step: ir_test.ExpectNumber) -> Failure | None:
    what = f"the score of `{step.rule}` for" if step.rule else "the total of"
    if step.least == step.most:
        wanted = str(step.least)
    else:
        bounds = ((step.least, "at least", -(2**62)), (step.most, "at most", 2**62))
        wanted = " and ".join(f"{word} {bound}" for bound, word, open_ in bounds if bound != open_)
    expected = f"{what} `{step.pod}` on `{step.node}` to be {wanted}"
    try:
        found = _score(run, step.rule, step.pod, step.node)
    except EvaluationError as error:
        return _unmet(run, step, expected, str(error), step.node)
    if step.least <= found <= step.most:
        return None
    return _unmet(run, step, expected, f"it is {found}", step.node)


def _gang(run: Run, step: ir_test.ExpectGang) -> Failure | None:
    members = [pod for pod in run.trial.state.view.pods.values() if _gang_key(run.evaluator.profile, pod) == step.key]
    bound = sum(bool(run.trial.node_of(pod.uid)) for pod in members)
    found = {"size": len(members), "bound": bound, "waiting": len(members) - bound}
    wanted = {name: getattr(step, name) for name in found if getattr(step, name) is not None}
    if all(found[name] == number for name, number in wanted.items()):
        return None
    expected = ", ".join(f"{name} {number}" for name, number in wanted.items())
    happened = ", ".join(f"{name} {found[name]}" for name in wanted)
    names = ", ".join(f"`{pod.name}`" for pod in members) or "none"
    message = f"expected the gang `{step.key}` to have {expected}, but it has {happened}"
    return Failure(message, step.span, (f"members: {names}",))


def _gang_key(profile: Profile, pod: Any) -> str | None:
    if pod.scheduler_name != profile.scheduler_name:
        return None
    return next((key for rule in profile.gangs if (key := rule.key(pod)) is not None), None)


def _that(run: Run, step: ir_test.ExpectThat) -> Failure | None:
    try:
        if evaluated(step.condition, _Questions(run)) is True:
            return None
        happened = "it is false"
    except EvaluationError as error:
        happened = f"it has no value: {error}"
    asked = [part for part in walk(step.condition) if isinstance(part, ir.Call) and part.function in QUESTIONS]
    values = tuple(_told_answer(run, call) for call in dict.fromkeys(asked))
    return Failure(f"expected the condition to hold, but {happened}", step.span, values)


def _names(call: ir.Call) -> list[str]:
    return [str(arg.value) for arg in call.args if isinstance(arg, ir.Const)]


def _told_answer(run: Run, call: ir.Call) -> str:
    """`placed("a"): false`."""
    names = _names(call)
    try:
        answer = display(_asked(run, call.function, names), call.type)
    except EvaluationError as error:
        answer = str(error)
    shown = ", ".join(f'"{name}"' for name in names)
    return f"{call.function}({shown}): {answer}"


class _Questions(Names):
    """What a condition may ask: the questions and the params."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def closure(self, expr: ir.Expr) -> Closure:
        """A question is answered by the run."""
        if isinstance(expr, ir.Call) and expr.function in QUESTIONS:
            function, names = expr.function, _names(expr)
            return lambda evaluation: _asked(self._run, function, names)
        return super().closure(expr)

    def param(self, name: str) -> Closure:
        """The param's value."""
        defaults = {param.name: param.default for param in self._run.policy.params}
        value = {**defaults, **self._run.params}[name]
        return lambda evaluation: value


def _asked(run: Run, function: str, names: list[str]) -> object:
    if function == "placed":
        node = run.trial.node_of(run.uids[names[0]])
        return bool(node) if len(names) == 1 else node == names[1]
    if function == "feasible":
        attempt = run.attempt(names[0])
        feasible = () if attempt is None else attempt.feasible
        return bool(feasible) if len(names) == 1 else names[1] in feasible
    if function == "score":
        return _score(run, names[0], names[1], names[2])
    if function == "annotation":
        carried = [bind.annotations for _, bind in run.trial.binds if bind.uid == run.uids[names[0]]]
        return optional(carried[-1].get(names[1]) if carried else None)
    if function == "reason":
        attempt = run.attempt(names[0])
        status = None if attempt is None else attempt.refused.get(names[1])
        return optional(None if status is None else status.message)
    if function == "logged":
        return any((line.uid, line.message) == (run.uids[names[0]], names[1]) for _, line in run.trial.logged)
    return _score(run, None, names[0], names[1])


def _score(run: Run, rule: str | None, pod: str, node: str) -> int:
    """A rule's score of a node, or the node's total. EvaluationError: the node was not scored."""
    attempt = run.attempt(pod)
    if attempt is None:
        raise EvaluationError(f"`{pod}` was never tried, so nothing scored `{node}`")
    if node not in attempt.totals:
        status = attempt.refused.get(node)
        raise EvaluationError(f"`{node}` was rejected by `{status.plugin}`, so it has no score" if status
                              else f"`{node}` did not stand there when `{pod}` was tried")  # fmt: skip
    return attempt.totals[node] if rule is None else attempt.scores[node].get(rule, 0)


# --- what happened ---------------------------------------------------------------------------------------


def _whereabouts(run: Run, pod: str) -> str:
    """Where the pod is: "it is on `b`"."""
    uid = run.uids[pod]
    node = run.trial.node_of(uid)
    if node:
        return f"it is on `{node}`"
    if uid not in run.trial.cluster.pods:
        return "it is gone: it was preempted, or deleted"
    place = run.trial.state.place(uid)
    said = {"unschedulable": "it fits nowhere", "backoff": "it was refused and waits to be tried again",
            "held": "its gang is held", "active": "it is still queued", "gated": "it is gated"}  # fmt: skip
    return said.get(place, f"it is {place}")


def _why(run: Run, pod: str, node: str | None = None) -> list[str]:
    """Lines that say why the pod went where it did."""
    attempt = run.attempt(pod)
    lines: list[str] = []
    if attempt is not None and node is not None and node in attempt.refused:
        status = attempt.refused[node]
        lines.append(f"`{node}` was rejected by `{status.plugin}`: {status.message}")
    lines += _without_pods(run, attempt)
    said = run.trial.refusal(run.uids[pod])
    if said:
        lines.append(said)
    told = [line for line in run.trial.timeline(run.uids[pod]) if line.what in ("preempting", "preempted")]
    lines += list(dict.fromkeys(map(str, told)))
    if attempt is not None and attempt.totals:
        best = sorted(attempt.totals.items(), key=lambda item: (-item[1], item[0]))
        shown = best[:_SHOWN] + [one for one in best[_SHOWN:] if one[0] == node]
        lines += [f"`{name}` has {_sum(run, attempt, name)}" for name, _ in shown]
    return lines


def _without_pods(run: Run, attempt: Attempt | None) -> Iterator[str]:
    """Which nodes were refused since they are given no room for pods at all."""
    for name, status in attempt.refused.items() if attempt is not None else ():
        node = run.trial.cluster.nodes.get(name)
        if node is not None and "pods" not in (node.status.allocatable or {}) and TOO_MANY_PODS in status.reasons:
            yield f"`{name}` is given without `pods` in `allocatable`, so it has room for none; write `pods: 110`"


def _sum(run: Run, attempt: Attempt, node: str) -> str:
    """`first 100 (tier), then 286 = TaintToleration 100×2 + NodeResourcesFit 86×1`."""
    weights, scores = {plugin.name: weight for plugin, weight in run.evaluator.profile.scores}, attempt.scores[node]
    tiers = [plugin for plugin in scores if plugin in run.evaluator.profile.tiers]
    parts = [f"{plugin} {score}×{weights[plugin]}" for plugin, score in scores.items() if score and plugin not in tiers]
    before = "".join(f"{plugin} {scores[plugin]} (tier), " for plugin in tiers) + ("then " if tiers else "")
    total = attempt.totals[node] - sum(scores[plugin] * weights[plugin] for plugin in tiers)
    return f"{before}{total}" + (f" = {' + '.join(parts)}" if parts else "")


_VERDICTS: Final[Mapping[type, Callable[[Run, Any], Failure | None]]] = {
    ir_test.ExpectOn: _on,
    ir_test.ExpectBefore: _before,
    ir_test.ExpectWaits: _waits,
    ir_test.ExpectRejected: _rejected,
    ir_test.ExpectNumber: _number,
    ir_test.ExpectGang: _gang,
    ir_test.ExpectThat: _that,
}
