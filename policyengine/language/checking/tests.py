"""The `test` members: what they give exists and is well formed, what they expect names what was given."""

from __future__ import annotations

from collections.abc import Set

from policyengine import quantity
from policyengine.language import ir_test, syntax
from policyengine.language.checking.codes import NOT_AVAILABLE, WRONG_LITERAL, WRONG_TEST
from policyengine.language.checking.context import replacing
from policyengine.language.checking.params import constant, outside
from policyengine.language.checking.plugins import NotPlainError, key_of, plain
from policyengine.language.checking.rules import PolicyScope
from policyengine.language.types import DURATION
from policyengine.language.values import EvaluationError, parse_timestamp

_TEXTS, _AMOUNTS, _ANY = "texts", "amounts", "any"
NODE_FIELDS = {
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "capacity": _AMOUNTS,
    "allocatable": _AMOUNTS,
    "taints": list,
    "unschedulable": bool,
    "ready": bool,
    "conditions": list,
    "images": list,
    "zone": str,
    "region": str,
    "createdAt": str,
}
"""What `given node` takes -> the form of its value."""
POD_FIELDS = {
    "namespace": str,
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "requests": _AMOUNTS,
    "limits": _AMOUNTS,
    "priority": int,
    "priorityClass": str,
    "nodeSelector": _TEXTS,
    "tolerations": list,
    "containers": list,
    "initContainers": list,
    "images": list,
    "serviceAccount": str,
    "createdAt": str,
    "podGroup": str,
}
"""What `given pod` takes -> the form of its value."""
_FORMS = {
    _TEXTS: "a map of strings",
    _AMOUNTS: "a map of amounts, such as `{cpu: 4, memory: 8Gi}`",
    list: "a list",
    bool: "a bool",
    str: "a string",
    int: "an int",
}


def check_test(scope: PolicyScope, member: syntax.Test, rules: Set[str]) -> ir_test.Test | None:
    """A test, None (reported) where a step of it is wrong. `rules`: what may refuse a pod."""
    check = _Test(scope, rules)
    steps = [check.step(step) for step in member.steps]
    good = tuple(step for step in steps if step is not None)
    if len(good) < len(steps):
        return None
    return ir_test.Test(name=member.name.text, steps=good, span=member.span)


class _Test:
    """One test on its way through the check."""

    def __init__(self, scope: PolicyScope, rules: Set[str]) -> None:
        self._scope = scope
        self._rules = rules
        self._nodes: set[str] = set()
        self._pods: set[str] = set()

    def step(self, step: syntax.TestStep) -> ir_test.Step | None:
        """A step; None (reported) for a wrong one."""
        match step:
            case syntax.GivenNode():
                fields = self._fields(step.fields, NODE_FIELDS, "node")
                if fields is None or not self._new(step.name, self._nodes, "node"):
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
        if fields is None or not placed or not self._new(step.name, self._pods, "pod"):
            return None
        on = step.on.text if step.on else None
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
        self, written: syntax.MapLiteral | None, known: dict[str, object], what: str
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
            wrong = _wrong_form(value, known.get(name, _ANY))
            if name not in known:
                good = self._known(
                    syntax.NameText(span=entry.key.span, text=name),
                    known.keys(),
                    f"field of a given {what}",
                    "no field is called",
                )
            elif wrong:
                report.error(WRONG_TEST, f"`{name}` is {wrong}", entry.value.span)
                good = False
            fields[name] = value
        return fields if good else None

    # --- expected -------------------------------------------------------------------------------------

    def _expected(self, step: syntax.TestStep) -> ir_test.Step | None:
        match step:
            case syntax.ExpectOn():
                if self._pod(step.pod) & self._known(step.node, self._nodes, "node"):
                    return ir_test.ExpectOn(pod=step.pod.text, node=step.node.text, span=step.span)
            case syntax.ExpectBefore():
                if self._pod(step.pod) & self._pod(step.other):
                    return ir_test.ExpectBefore(pod=step.pod.text, other=step.other.text, span=step.span)
            case syntax.ExpectWaits():
                if self._pod(step.pod):
                    return ir_test.ExpectWaits(pod=step.pod.text, span=step.span)
            case syntax.ExpectRejected():
                return self._rejected(step)
            case _:
                message = "`expect that` is not available in this version"
                self._scope.report.error(NOT_AVAILABLE, message, step.span)
        return None

    def _rejected(self, step: syntax.ExpectRejected) -> ir_test.Step | None:
        good = self._pod(step.pod)
        good &= step.node is None or self._known(step.node, self._nodes, "node")
        good &= step.rule is None or self._known(step.rule, self._rules, "rule", "no rule or plugin is called")
        if not good:
            return None
        node, rule = step.node.text if step.node else None, step.rule.text if step.rule else None
        return ir_test.ExpectRejected(pod=step.pod.text, node=node, rule=rule, span=step.span)

    def _pod(self, name: syntax.NameText) -> bool:
        return self._known(name, self._pods, "pod")

    def _known(self, name: syntax.NameText, names: Set[str], what: str, absent: str = "") -> bool:
        if name.text in names:
            return True
        close = self._scope.report.closest(name.text, names)
        absent = absent or f"no {what} was given as"
        hint = f"; did you mean `{close}`?" if close else ""
        fix = replacing(name.span, f'"{close}"') if close and what in ("node", "pod", "rule") else None
        self._scope.report.error(WRONG_TEST, f"{absent} `{name.text}`{hint}", name.span, fix)
        return False


def _wrong_form(value: object, form: object) -> str | None:
    """What the value should be, None if it is."""
    if form == _ANY:
        return None
    if form == _TEXTS:
        good = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    elif form == _AMOUNTS:
        good = isinstance(value, dict) and all(map(_is_amount, value.values()))
    else:
        good = isinstance(form, type) and isinstance(value, form) and (form is not int or not isinstance(value, bool))
    return None if good else _FORMS[form]


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        quantity.parse(value)
    except quantity.QuantityError:
        return False
    return True
