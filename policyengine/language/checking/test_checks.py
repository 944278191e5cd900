"""The `test` members: what they give exists and is well formed, what they expect names what was given.

The condition of `expect that` asks what became of pods, by name:

| function | value |
|---|---|
| `placed("p")`, `placed("p", "a")` | whether the pod is placed, on that node |
| `feasible("p")`, `feasible("p", "a")` | whether a node, or that one, passed every filter at the pod's last attempt |
| `score("rule", "p", "a")` | the score, 0 to 100, that a rule or plugin gave the node then, before its weight |
| `total("p", "a")` | the node's weighted sum then |

A pod that was given on a node is evaluated as if it had to be placed now.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec import Struct

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import NO_OVERLOAD, OUT_OF_REACH, WRONG_LITERAL, WRONG_TEST
from policyengine.language.checking.context import Context, error_at, replacing
from policyengine.language.checking.expression import ExpressionChecker
from policyengine.language.checking.given_objects import FOLLOWS, NODE_FIELDS, OF_ONE_CONTAINER, POD_FIELDS, wrong_value
from policyengine.language.checking.param_checks import constant, outside
from policyengine.language.checking.plugin_checks import NotPlainError, key_of, plain
from policyengine.language.checking.policy_scope import PolicyScope
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.ir.ir_walk import is_error, walk
from policyengine.language.types import BOOL, DURATION, INT, STRING, Reach, Type
from policyengine.language.values import EvaluationError, parse_timestamp


def check_test(scope: PolicyScope, member: syntax.Test, rules: Set[str]) -> ir_test.Test | None:
    """A test, None (reported) where a step of it is wrong. `rules`: what may refuse a pod."""
    check = _Test(scope, rules)
    steps = [check.step(step) for step in member.steps]
    good = tuple(step for step in steps if step is not None)
    if len(good) < len(steps):
        return None
    return ir_test.Test(name=member.name.text, steps=good, span=member.span, file=scope.file)


class _Test:
    """One test on its way through the check."""

    def __init__(self, scope: PolicyScope, rules: Set[str]) -> None:
        self._scope = scope
        self._rules = rules
        self._nodes: set[str] = set()
        self._pods: set[str] = set()
        self._standing: set[str] = set()
        """Pods that were given on a node."""

    def step(self, step: syntax.TestStep) -> ir_test.Step | None:
        """A step; None (reported) for a wrong one."""
        match step:
            case syntax.GivenNode():
                fields = self._fields(step.fields, NODE_FIELDS, "node")
                if not self._new(step.name, self._nodes, "node") or fields is None:
                    return None
                return ir_test.GivenNode(name=step.name.text, fields=fields, span=step.span)
            case syntax.GivenPod():
                return self._given_pod(step)
            case syntax.GivenNow():
                return self._given_now(step)
            case syntax.GivenParam():
                return self._given_param(step)
            case syntax.After():
                value = constant(self._scope.checker, step.duration, DURATION)
                if value is None or not isinstance(value.value, int):
                    return None
                return ir_test.After(duration=value.value, span=step.span)
            case _:
                return self._expected(step)

    # --- given ----------------------------------------------------------------------------------------

    def _given_pod(self, step: syntax.GivenPod) -> ir_test.Step | None:
        fields = self._fields(step.fields, POD_FIELDS, "pod")
        placed = step.on is None or self._known(step.on, self._nodes, "node")
        if not self._new(step.name, self._pods, "pod"):
            return None
        on = step.on.text if step.on else None
        if on is not None:
            self._standing.add(step.name.text)
        if fields is None or not placed:
            return None
        return ir_test.GivenPod(name=step.name.text, on=on, fields=fields, span=step.span)

    def _given_now(self, step: syntax.GivenNow) -> ir_test.Step | None:
        try:
            return ir_test.GivenNow(now=parse_timestamp(step.text.text), span=step.span)
        except EvaluationError as error:
            self._scope.report.error(WRONG_LITERAL, str(error), step.text.span)
            return None

    def _given_param(self, step: syntax.GivenParam) -> ir_test.Step | None:
        name = step.name.text
        param = self._scope.names.param(name)
        if param is None:
            if not self._scope.names.was_reported(name):
                known = {param.name for param in self._scope.names.params()}
                self._known(step.name, known, "param", "no param is called")
            return None
        value = constant(self._scope.checker, step.value, param.type)
        wrong = outside(param, value.value) if value is not None else None
        if wrong:
            self._scope.report.error(WRONG_TEST, wrong, step.value.span)
        return None if value is None or wrong else ir_test.GivenParam(name=name, value=value.value, span=step.span)

    def _new(self, name: syntax.NameText, names: set[str], what: str) -> bool:
        if name.text in names:
            self._scope.report.error(WRONG_TEST, f"the {what} `{name.text}` is given twice", name.span)
            return False
        names.add(name.text)
        return True

    def _fields(
        self, written: syntax.MapLiteral | None, known: Mapping[str, Type], what: str
    ) -> dict[str, object] | None:
        fields: dict[str, object] = {}
        report, good = self._scope.report, True
        for entry in written.entries if written else ():
            try:
                name, value = key_of(entry), plain(entry.value)
            except NotPlainError as error:
                report.error(WRONG_TEST, "a given value is a literal, a list or a map of literals", error.span)
                good = False
                continue
            good &= self._field(entry, name, value, known, what)
            fields[name] = value
        doubled = [name for name in OF_ONE_CONTAINER if name in fields and "containers" in fields]
        if doubled and written is not None:
            message = f"`{doubled[0]}` is said of each of the `containers`, or of the pod, not of both"
            report.error(WRONG_TEST, message, written.span)
        return fields if good and not doubled else None

    def _field(self, entry: syntax.MapEntry, name: str, value: object, known: Mapping[str, Type], what: str) -> bool:
        if name in known:
            wrong = wrong_value(value, known[name])
            if wrong:
                self._scope.report.error(WRONG_TEST, f"`{name}` is {wrong}", entry.value.span)
            return not wrong
        if why := FOLLOWS[what].get(name):
            self._scope.report.error(WRONG_TEST, f"`{name}` is not given: it {why}", entry.key.span)
            return False
        if name in ("cpu", "memory", "storage"):
            holder = "allocatable" if what == "node" else "requests"
            message = f"a given {what} has no field `{name}`; amounts stand in `{holder}: {{…}}`"
            self._scope.report.error(WRONG_TEST, message, entry.key.span)
            return False
        key = syntax.NameText(span=entry.key.span, text=name)
        return self._known(key, known.keys(), f"field of a given {what}", f"a given {what} has no field")

    # --- expected -------------------------------------------------------------------------------------

    def _expected(self, step: syntax.TestStep) -> ir_test.Step | None:
        match step:
            case syntax.ExpectOn():
                if self._pod(step.pod) & self._known(step.node, self._nodes, "node"):
                    return ir_test.ExpectOn(pod=step.pod.text, node=step.node.text, span=step.span)
            case syntax.ExpectBefore():
                if step.pod.text == step.other.text:
                    self._scope.report.error(WRONG_TEST, "no pod comes before itself", step.other.span)
                elif self._to_place(step.pod) & self._to_place(step.other):
                    return ir_test.ExpectBefore(pod=step.pod.text, other=step.other.text, span=step.span)
            case syntax.ExpectWaits():
                if self._to_place(step.pod):
                    return ir_test.ExpectWaits(pod=step.pod.text, span=step.span)
            case syntax.ExpectRejected():
                return self._rejected(step)
            case syntax.ExpectThat():
                known = {"pod": self._pods, "node": self._nodes, "rule": self._rules}
                condition = check_condition(self._scope, step.condition, known)
                if condition is not None:
                    return ir_test.ExpectThat(condition=condition, span=step.span)
        return None

    def _rejected(self, step: syntax.ExpectRejected) -> ir_test.Step | None:
        good = self._to_place(step.pod)
        good &= step.node is None or self._known(step.node, self._nodes, "node")
        good &= step.rule is None or self._known(step.rule, self._rules, "rule", "no rule or plugin is called")
        if not good:
            return None
        node, rule = step.node.text if step.node else None, step.rule.text if step.rule else None
        return ir_test.ExpectRejected(pod=step.pod.text, node=node, rule=rule, span=step.span)

    def _pod(self, name: syntax.NameText) -> bool:
        return self._known(name, self._pods, "pod")

    def _to_place(self, name: syntax.NameText) -> bool:
        """Whether the pod is one that the scheduler is to place."""
        if self._pod(name) and name.text in self._standing:
            self._scope.report.error(WRONG_TEST, f"`{name.text}` is given on a node: it is never queued", name.span)
            return False
        return name.text in self._pods

    def _known(self, name: syntax.NameText, names: Set[str], what: str, absent: str = "") -> bool:
        if name.text in names:
            return True
        close = self._scope.report.closest(name.text, names)
        absent = absent or f"no {what} was given as"
        hint = f"; did you mean `{close}`?" if close else ""
        fix = replacing(name.span, f'"{close}"') if close and what in ("node", "pod", "rule") else None
        self._scope.report.error(WRONG_TEST, f"{absent} `{name.text}`{hint}", name.span, fix)
        return False


# --- `expect that` ----------------------------------------------------------------------------------------


class Question(Struct, frozen=True):
    """A function of a test's conditions: what its arguments name, how many of them may be left out, its type."""

    arguments: tuple[str, ...]
    optional: int
    result: Type

    def written(self, name: str) -> str:
        """The call, as one writes it."""
        shown = {"pod": '"p"', "node": '"a"', "rule": '"rule"'}
        return f"{name}({', '.join(shown[argument] for argument in self.arguments)})"


QUESTIONS: Final[Mapping[str, Question]] = {
    "placed": Question(("pod", "node"), 1, BOOL),
    "feasible": Question(("pod", "node"), 1, BOOL),
    "score": Question(("rule", "pod", "node"), 0, INT),
    "total": Question(("pod", "node"), 0, INT),
}


def check_condition(scope: PolicyScope, condition: syntax.Expr, known: Mapping[str, Set[str]]) -> ir.Expr | None:
    """The typed condition, None (reported) for a wrong one. `known`: the names of pods, nodes and rules."""
    checker = _Checker(scope, known)
    checked = checker.check(condition, Context())
    if is_error(checked):
        return None
    if checked.type != BOOL:
        scope.report.error(WRONG_TEST, f"`expect that` takes a bool, this is {checked.type}", condition.span)
        return None
    parts = list(walk(checked))
    read = sorted(".".join(part.path) for part in parts if isinstance(part, ir.Field) and part.path[0] != "policy")
    read += [part.name for part in parts if isinstance(part, ir.LetRef)]
    if read:
        path = read[0]
        message = f'`expect that` asks about pods by name, as in `placed("p")`; it reads no `{path}`'
        scope.report.error(OUT_OF_REACH, message, condition.span)
        return None
    if not any(isinstance(part, ir.Call) and part.function in QUESTIONS for part in parts):
        asked = ", ".join(f"`{question.written(name)}`" for name, question in QUESTIONS.items())
        scope.report.error(WRONG_TEST, f"the condition asks nothing of the run; ask {asked}", condition.span)
        return None
    return checked


class _Checker(ExpressionChecker):
    """Expressions in which the four functions have a meaning."""

    def __init__(self, scope: PolicyScope, known: Mapping[str, Set[str]]) -> None:
        super().__init__(scope.report, scope.names)
        self._known = known

    def _call(self, expr: syntax.Call, context: Context, expected: Type | None) -> ir.Expr:
        question = QUESTIONS.get(expr.function) if expr.target is None else None
        if question is None:
            return super()._call(expr, context, expected)
        given = len(expr.args)
        names = [arg.value for arg in expr.args if isinstance(arg, syntax.Literal) and isinstance(arg.value, str)]
        if not len(question.arguments) - question.optional <= given <= len(question.arguments) or len(names) < given:
            message = f"`{expr.function}` takes names in quotes: `{question.written(expr.function)}`"
            return self.report.failed(NO_OVERLOAD, message, expr.span)
        kinds = question.arguments[:given]
        good = [self._is_known(*one) for one in zip(names, kinds, expr.args, strict=True)]
        if not all(good):
            return error_at(expr.span)
        args = tuple(
            ir.Const(type=STRING, span=arg.span, value=name) for name, arg in zip(names, expr.args, strict=True)
        )
        return ir.Call(type=question.result, span=expr.span, reach=Reach.CLUSTER, function=expr.function, args=args)

    def _is_known(self, name: str, kind: str, arg: syntax.Expr) -> bool:
        known = self._known[kind]
        if name in known:
            return True
        close = self.report.closest(name, known)
        hint = f"; did you mean `{close}`?" if close else ""
        what = "no rule or plugin is called" if kind == "rule" else f"no {kind} was given as"
        fix = replacing(arg.span, f'"{close}"') if close else None
        self.report.error(WRONG_TEST, f"{what} `{name}`{hint}", arg.span, fix)
        return False
