"""The condition of `expect that`: what became of pods, asked by name.

| function | value |
|---|---|
| `placed("p")`, `placed("p", "a")` | whether the pod is placed, on that node |
| `feasible("p")`, `feasible("p", "a")` | whether a node, or that one, passed every filter at the pod's last attempt |
| `score("rule", "p", "a")` | the score, 0 to 100, that a rule or plugin gave the node then, before its weight |
| `total("p", "a")` | the node's weighted sum then |

A pod that was given on a node is judged as if it had to be placed now.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec import Struct

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import NO_OVERLOAD, OUT_OF_REACH, WRONG_TEST
from policyengine.language.checking.context import Context, error_at, is_error, replacing
from policyengine.language.checking.expression import ExpressionChecker
from policyengine.language.checking.policy_scope import PolicyScope
from policyengine.language.ir.ir_walk import walk
from policyengine.language.types import BOOL, INT, STRING, Reach, Type


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
