"""The `test` members: what they give exists and is well formed, what they expect names what was given.

The condition of `expect that` asks what became of pods, by name:

| function | value |
|---|---|
| `placed("p")`, `placed("p", "a")` | whether the pod is placed, on that node |
| `feasible("p")`, `feasible("p", "a")` | whether a node, or that one, passed every filter at the pod's last attempt |
| `score("rule", "p", "a")` | the score, 0 to 100, that a rule or plugin gave the node then, before its weight |
| `total("p", "a")` | the node's weighted sum then |
| `reason("p", "a")` | an optional: the text with which the node was refused then |
| `annotation("p", "key")` | an optional: the annotation of that key that the pod's binding carried |
| `logged("p", "text")` | whether an `on … log` said exactly that of the pod, at any point |

A pod that was given on a node is evaluated as if it had to be placed now.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.context import Context
from policyengine.language.checking.expression import check_expression
from policyengine.language.checking.findings import error_at
from policyengine.language.checking.given_objects import FOLLOWS, NODE_FIELDS, OF_ONE_CONTAINER, POD_FIELDS, wrong_value
from policyengine.language.checking.literal_types import NotPlainError, TwiceError, key_of, plain
from policyengine.language.checking.param_checks import constant, outside
from policyengine.language.checking.policy_scope import PolicyScope
from policyengine.language.diagnostics import listed
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.ir.ir_walk import is_error, walk
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DURATION, INT, STRING, Reach, Type, optional_of
from policyengine.language.values import EvaluationError, parse_timestamp

_FIELDS = {"node": NODE_FIELDS, "pod": POD_FIELDS}


def check_test(scope: PolicyScope, member: syntax.Test, rules: Set[str]) -> ir_test.Test:
    """A test, without the steps that could not be understood. `rules`: what may refuse a pod."""
    check = _Test(scope, rules)
    steps = tuple(step for written in member.steps if (step := check.step(written)) is not None)
    return ir_test.Test(name=member.name.text, steps=steps, span=member.span, file=scope.file)


class _Test:
    """One test on its way through the check."""

    def __init__(self, scope: PolicyScope, rules: Set[str]) -> None:
        self._context = scope.context
        self._report = scope.report
        self._named: dict[str, set[str]] = {"node": set(), "pod": set(), "rule": set(rules)}
        self._standing: set[str] = set()
        """Pods that were given on a node."""

    def step(self, step: syntax.TestStep) -> ir_test.Step | None:
        """A step, whatever was reported about it; None where nothing is left of it."""
        match step:
            case syntax.GivenNode(name=name):
                fields = self._fields(step.fields, "node")
                self._new(name, "node")
                return ir_test.GivenNode(name=name.text, fields=fields, span=step.span)
            case syntax.GivenPod(name=name, on=on):
                fields = self._fields(step.fields, "pod")
                if self._new(name, "pod") and on is not None:
                    self._standing.add(name.text)
                return ir_test.GivenPod(name=name.text, on=self._optional(on, "node"), fields=fields, span=step.span)
            case syntax.GivenNow(text=text):
                try:
                    return ir_test.GivenNow(now=parse_timestamp(text.text), span=step.span)
                except EvaluationError as error:
                    self._report.error("PE1006", str(error), text.span)
                    return None
            case syntax.GivenParam():
                return self._given_param(step)
            case syntax.After():
                value = constant(self._context, step.duration, DURATION).value
                return ir_test.After(duration=value, span=step.span) if isinstance(value, int) else None
            case syntax.ExpectOn(pod=pod):
                self._known(pod, "pod")
                self._known(step.node, "node")
                return ir_test.ExpectOn(pod=pod.text, node=step.node.text, span=step.span)
            case syntax.ExpectBefore(pod=pod, other=other):
                if pod.text == other.text:
                    self._report.error("PE2013", "no pod comes before itself", other.span)
                else:
                    self._to_place(pod)
                    self._to_place(other)
                return ir_test.ExpectBefore(pod=pod.text, other=other.text, span=step.span)
            case syntax.ExpectWaits(pod=pod):
                self._to_place(pod)
                return ir_test.ExpectWaits(pod=pod.text, span=step.span)
            case syntax.ExpectRejected(pod=pod):
                self._to_place(pod)
                node, rule = self._optional(step.node, "node"), self._optional(step.rule, "rule")
                return ir_test.ExpectRejected(pod=pod.text, node=node, rule=rule, span=step.span)
            case syntax.ExpectThat():
                condition = check_condition(self._context, step.condition, self._named)
                return ir_test.ExpectThat(condition=condition, span=step.span)
        raise AssertionError(step)

    def _new(self, name: syntax.NameText, kind: str) -> bool:
        if name.text in self._named[kind]:
            self._report.error("PE2013", f"the {kind} `{name.text}` is given twice", name.span)
            return False
        self._named[kind].add(name.text)
        return True

    def _known(self, name: syntax.NameText, kind: str) -> bool:
        return is_known(self._context, name.text, name.span, kind, self._named)

    def _optional(self, name: syntax.NameText | None, kind: str) -> str | None:
        """The text of a name that may be left out."""
        if name is not None:
            self._known(name, kind)
        return name.text if name is not None else None

    def _to_place(self, name: syntax.NameText) -> None:
        """A pod that the scheduler is to place."""
        if self._known(name, "pod") and name.text in self._standing:
            self._report.error("PE2013", f"`{name.text}` is given on a node: it is never queued", name.span)

    def _given_param(self, step: syntax.GivenParam) -> ir_test.Step | None:
        name, names = step.name.text, self._context.names
        param = names.param(name)
        if param is None:
            if name not in names.visible:
                known = {param.name for param in names.definitions.params.values()}
                self._report.unknown("PE2013", f"no param is called `{name}`", step.name.span, name, known, fix=None)
            return None
        value = constant(self._context, step.value, param.type)
        wrong = None if is_error(value) else outside(param, value.value)
        if wrong:
            self._report.error("PE2013", wrong, step.value.span)
        return ir_test.GivenParam(name=name, value=value.value, span=step.span)

    def _fields(self, written: syntax.MapLiteral | None, kind: str) -> dict[str, object]:
        fields: dict[str, object] = {}
        for entry in written.entries if written else ():
            try:
                name, value = key_of(entry), plain(entry.value)
                if name in fields:
                    raise TwiceError(entry)
            except NotPlainError as error:
                error.reported(self._report, "PE2013", "a given value is a literal, a list or a map of literals")
                continue
            self._field(entry, name, value, kind)
            fields[name] = value
        doubled = [name for name in OF_ONE_CONTAINER if name in fields and "containers" in fields]
        if doubled and written is not None:
            message = f"`{doubled[0]}` is said of each of the `containers`, or of the pod, not of both"
            self._report.error("PE2013", message, written.span)
        return fields

    def _field(self, entry: syntax.MapEntry, name: str, value: object, kind: str) -> None:
        known, span = _FIELDS[kind], entry.key.span
        if name in known:
            wrong = wrong_value(value, known[name])
            if wrong:
                self._report.error("PE2013", f"`{name}` is {wrong}", entry.value.span)
        elif why := FOLLOWS[kind].get(name):
            self._report.error("PE2013", f"`{name}` is not given: it {why}", span)
        elif name in ("cpu", "memory", "storage"):
            holder = "allocatable" if kind == "node" else "requests"
            message = f"a given {kind} has no field `{name}`; amounts stand in `{holder}: {{…}}`"
            self._report.error("PE2013", message, span)
        else:
            self._report.unknown("PE2013", f"a given {kind} has no field `{name}`", span, name, known, fix=None)


def is_known(context: Context, name: str, span: Span, kind: str, named: Mapping[str, Set[str]]) -> bool:
    """Whether a test has a pod, node or rule of that name; reported otherwise."""
    if name in named[kind]:
        return True
    message = f"no rule or plugin is called `{name}`" if kind == "rule" else f"no {kind} was given as `{name}`"
    context.report.unknown("PE2013", message, span, name, named[kind], fix='"{}"')
    return False


class Question(Struct, frozen=True):
    """A function of a test's conditions: what its arguments name, how many of them may be left out, its type."""

    arguments: tuple[str, ...]
    """Of a kind each: a pod, node or rule must exist; a key or text is any."""
    optional: int
    result: Type

    def written(self, name: str) -> str:
        """The call, as one writes it."""
        shown = {"pod": "p", "node": "a"}
        quoted = [f'"{shown.get(argument, argument)}"' for argument in self.arguments]
        return f"{name}({', '.join(quoted)})"


QUESTIONS: Final[Mapping[str, Question]] = {
    "placed": Question(("pod", "node"), 1, BOOL),
    "feasible": Question(("pod", "node"), 1, BOOL),
    "score": Question(("rule", "pod", "node"), 0, INT),
    "total": Question(("pod", "node"), 0, INT),
    "reason": Question(("pod", "node"), 0, optional_of(STRING)),
    "annotation": Question(("pod", "key"), 0, optional_of(STRING)),
    "logged": Question(("pod", "text"), 0, BOOL),
}


def asked(function: str, *names: str, span: Span) -> ir.Call:
    """The call of a question."""
    args = tuple(ir.Const(type=STRING, span=span, value=name) for name in names)
    return ir.Call(type=QUESTIONS[function].result, span=span, reach=Reach.CLUSTER, function=function, args=args)


def check_condition(context: Context, condition: syntax.Expr, named: Mapping[str, Set[str]]) -> ir.Expr:
    """The typed condition. `named`: the names of pods, nodes and rules."""

    def checker(place: Context, expr: syntax.Expr, expected: Type | None) -> ir.Expr:
        """Expressions in which the questions have a meaning."""
        if isinstance(expr, syntax.Call) and expr.target is None and expr.function in QUESTIONS:
            return _question(place, expr, named)
        return check_expression(place, expr, expected)

    checked = replace(context, checker=checker).check(condition)
    if is_error(checked):
        return checked
    if checked.type != BOOL:
        return context.failed("PE2013", f"`expect that` takes a bool, this is {checked.type}", condition.span)
    parts = list(walk(checked))
    read = sorted(".".join(part.path) for part in parts if isinstance(part, ir.Field) and part.path[0] != "policy")
    read += [part.name for part in parts if isinstance(part, ir.LetRef)]
    if read:
        message = f'`expect that` asks about pods by name, as in `placed("p")`; it reads no `{read[0]}`'
        return context.failed("PE1011", message, condition.span)
    if not any(isinstance(part, ir.Call) and part.function in QUESTIONS for part in parts):
        known = listed(question.written(name) for name, question in QUESTIONS.items())
        return context.failed("PE2013", f"the condition asks nothing of the run; ask {known}", condition.span)
    return checked


def _question(context: Context, expr: syntax.Call, named: Mapping[str, Set[str]]) -> ir.Expr:
    question = QUESTIONS[expr.function]
    names = [arg.value for arg in expr.args if isinstance(arg, syntax.Literal) and isinstance(arg.value, str)]
    given, most = len(expr.args), len(question.arguments)
    if not most - question.optional <= given <= most or len(names) < given:
        message = f"`{expr.function}` takes names in quotes: `{question.written(expr.function)}`"
        return context.failed("PE1004", message, expr.span)
    told = [(name, arg.span, kind) for name, kind, arg in zip(names, question.arguments, expr.args, strict=False)]
    if [name for name, span, kind in told if kind in named and not is_known(context, name, span, kind, named)]:
        return error_at(expr.span)
    context.report.types.setdefault(expr.span, question.result)
    return asked(expr.function, *names, span=expr.span)
