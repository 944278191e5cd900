"""The steps of a suite's test, or of one of its cases: what is given and what is expected, a case's values put in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from policyengine.checked_yaml import wrong_at
from policyengine.compiler.params import ParamError, convert
from policyengine.language import ir
from policyengine.language.checking.given_objects import FOLLOWS, NODE_FIELDS, OF_ONE_CONTAINER, POD_FIELDS, wrong_value
from policyengine.language.checking.param_checks import outside
from policyengine.language.checking.test_checks import asked
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DURATION, STRING, Reach, Type, optional_of
from policyengine.language.values import EvaluationError, optional, parse_timestamp
from policyengine.plain_yaml import plain
from policyengine.suggestion import closest

_HOLE: Final = re.compile(r"\$\{([^}]*)\}")


class SuiteError(ValueError):
    """A suite that cannot be used: one sentence, with line and column where there are some."""


class SuiteValues:
    """What the nodes of one test mean. `case`: the case's values by name; none, and `${…}` has nothing to name."""

    def __init__(self, policy: ir.Policy, plugins: Iterable[str], case: yaml.Node | None) -> None:
        self._policy = policy
        groups = (policy.filters, policy.scores, policy.gangs, policy.quotas, policy.permits)
        self._rules = {str(rule.name) for rules in groups for rule in rules} | set(plugins)
        self.case: dict[str, Any] = {} if case is None else plain(case)

    def value(self, node: yaml.Node) -> Any:
        """The data of a node, the case's values put in."""
        return self._substituted(plain(node), node)

    def key(self, node: yaml.Node) -> str:
        """A key's text, the case's values put in."""
        return self._text(str(node.value), node)

    def _substituted(self, data: Any, node: yaml.Node) -> Any:
        if isinstance(data, dict):
            return {self._text(key, node): self._substituted(value, node) for key, value in data.items()}
        if isinstance(data, list):
            return [self._substituted(item, node) for item in data]
        if not isinstance(data, str):
            return data
        whole = _HOLE.fullmatch(data)
        return self._of_case(whole[1], node) if whole else self._text(data, node)

    def _text(self, text: str, node: yaml.Node) -> str:
        return _HOLE.sub(lambda hole: str(self._of_case(hole[1], node)), text) if "${" in text else text

    def _of_case(self, name: str, node: yaml.Node) -> Any:
        if name in self.case:
            return self.case[name]
        known = ", ".join(f"`{key}`" for key in self.case) or "nothing"
        raise self.wrong(node, f"no case gives `{name}`; this one gives {known}")

    def wrong(self, node: yaml.Node, message: str) -> SuiteError:
        """What is wrong, with its place."""
        return SuiteError(str(wrong_at(node, message)))

    def param(self, name: str, node: yaml.Node) -> object:
        """A param's value in its grain."""
        param = next((one for one in self._policy.params if one.name == name), None)
        if param is None:
            raise self.wrong(node, unknown(name, [one.name for one in self._policy.params], "no param is called"))
        try:
            value = convert(self.value(node), param.type, name)
        except ParamError as error:
            raise self.wrong(node, str(error)) from None
        if problem := outside(param, value):
            raise self.wrong(node, problem)
        return value

    def rule(self, name: str, node: yaml.Node) -> str:
        """The name of a rule or plugin."""
        if name not in self._rules:
            raise self.wrong(node, unknown(name, self._rules, "no rule or plugin is called"))
        return name


def fields_of(node: yaml.Node | None) -> dict[str, Any]:
    """Key -> node."""
    return {key.value: value for key, value in pairs_of(node)}


def pairs_of(node: yaml.Node | None) -> list[tuple[Any, Any]]:
    """The keys and values of a mapping, as nodes; none of anything else."""
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def items_of(node: yaml.Node | None) -> list[Any]:
    """The items of a sequence, as nodes; none of anything else."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def span_of(node: yaml.Node) -> Span:
    """Where a node stands in the suite's text."""
    return Span(node.start_mark.index, node.end_mark.index)


def unknown(name: str, known: Iterable[str], absent: str) -> str:
    """A name that does not exist, and the one that was probably meant."""
    close = closest(name, list(known))
    return f"{absent} `{name}`" + (f"; did you mean `{close}`?" if close else "")


_LARGE: Final = 2**62


class SuiteTest:
    """One test, or case, on its way to steps."""

    def __init__(self, values: SuiteValues, root: dict[str, Any], fields: dict[str, Any]) -> None:
        """`root`, `fields`: those of the suite and of the test, as nodes."""
        self._values = values
        self._root = root
        self._test = fields
        self._nodes: set[str] = set()
        self._pods: set[str] = set()
        self._standing: set[str] = set()

    def steps(self) -> Iterator[ir_test.Step]:
        """The steps in order: what the suite gives, what the test gives, then its steps.

        Raises:
            SuiteError: something is named or given that does not exist, or has the wrong form.
        """
        yield from self._params(self._root.get("params"))
        yield from self._part({"nodes": self._root["nodes"]} if "nodes" in self._root else {})
        yield from self._part(self._test)
        for step in items_of(self._test.get("steps")):
            yield from self._part(fields_of(step))

    def _part(self, fields: dict[str, Any]) -> Iterator[ir_test.Step]:
        if "after" in fields:
            node = fields["after"]
            yield ir_test.After(duration=self._duration(node), span=span_of(node))
        if "now" in fields:
            yield self._now(fields["now"])
        yield from self._params(fields.get("params"))
        for key, value in pairs_of(fields.get("nodes")):
            yield self._node(key, value)
        for key, value in pairs_of(fields.get("pods")):
            yield self._pod(key, value)
        for item in items_of(fields.get("expect")):
            yield self._expectation(item)

    # --- given ----------------------------------------------------------------------------------------

    def _duration(self, node: yaml.Node) -> int:
        try:
            value = convert(self._values.value(node), DURATION, "after")
        except ParamError:
            raise self._values.wrong(node, f"`{node.value}` is no duration; write `10s` or `5min`") from None
        assert isinstance(value, int)
        if value < 0:
            raise self._values.wrong(node, f"`{node.value}` is in the past; time goes on by `10s` or `5min`")
        return value

    def _now(self, node: yaml.Node) -> ir_test.Step:
        try:
            return ir_test.GivenNow(now=parse_timestamp(str(self._values.value(node))), span=span_of(node))
        except EvaluationError as error:
            raise self._values.wrong(node, str(error)) from None

    def _params(self, node: yaml.Node | None) -> Iterator[ir_test.Step]:
        for key, value in pairs_of(node):
            yield ir_test.GivenParam(name=key.value, value=self._values.param(key.value, value), span=span_of(key))

    def _node(self, key: yaml.Node, value: yaml.Node) -> ir_test.Step:
        name = self._values.key(key)
        self._nodes.add(name)
        fields = self._given(value, NODE_FIELDS, "node")
        return ir_test.GivenNode(name=name, fields=fields, span=span_of(key))

    def _pod(self, key: yaml.Node, value: yaml.Node) -> ir_test.Step:
        name = self._values.key(key)
        if name in self._pods:
            raise self._values.wrong(key, f"the pod `{name}` is given twice")
        self._pods.add(name)
        fields = self._given(value, {**POD_FIELDS, "on": POD_FIELDS["namespace"]}, "pod")
        on = fields.pop("on", None)
        if on is not None:
            self._known(str(on), self._nodes, "node", fields_of(value)["on"])
            self._standing.add(name)
        return ir_test.GivenPod(name=name, on=None if on is None else str(on), fields=fields, span=span_of(key))

    def _given(self, node: yaml.Node, known: Mapping[str, Type], what: str) -> dict[str, object]:
        fields: dict[str, object] = self._values.value(node) or {}
        places = {self._values.key(key): (key, value) for key, value in pairs_of(node)}
        for name, value in fields.items():
            key, place = places[name]
            if name not in known:
                why = FOLLOWS[what].get(name)
                message = f"`{name}` is not given: it {why}" if why else None
                raise self._values.wrong(key, message or unknown(name, known, f"a given {what} has no field"))
            if problem := wrong_value(value, known[name]):
                raise self._values.wrong(place, f"`{name}` is {problem}")
        if "containers" in fields and (doubled := [name for name in OF_ONE_CONTAINER if name in fields]):
            message = f"`{doubled[0]}` is said of each of the `containers`, or of the pod, not of both"
            raise self._values.wrong(node, message)
        return fields

    # --- expected -------------------------------------------------------------------------------------

    def _expectation(self, node: yaml.Node) -> ir_test.Step:
        places, data, span = fields_of(node), self._values.value(node), span_of(node)
        if "gang" in data:
            gang = data["gang"]
            counts = {name: gang.get(name) for name in ("size", "bound", "waiting")}
            return ir_test.ExpectGang(key=gang["key"], **counts, span=span)
        pod = self._known(data["pod"], self._pods, "pod", places["pod"])
        if "on" in data:
            return ir_test.ExpectOn(pod=pod, node=self._known(data["on"], self._nodes, "node", places["on"]), span=span)
        if "node" in data:
            return self._number(pod, data, places, span)
        if "logged" in data:
            return ir_test.ExpectThat(condition=asked("logged", pod, str(data["logged"]), span=span), span=span)
        if "annotation" in data:
            return self._annotation(pod, data, span)
        if pod in self._standing:
            raise self._values.wrong(places["pod"], f"`{pod}` is given on a node: it is never queued")
        if "before" in data:
            other = self._known(data["before"], self._pods - {pod} - self._standing, "other pod", places["before"])
            return ir_test.ExpectBefore(pod=pod, other=other, span=span)
        if "waits" in data:
            return ir_test.ExpectWaits(pod=pod, span=span)
        return self._rejected(pod, data["rejected"], places["rejected"], span)

    def _rejected(self, pod: str, data: Any, node: yaml.Node, span: Span) -> ir_test.Step:
        how, places = (data, fields_of(node)) if isinstance(data, dict) else ({}, {})
        on = self._known(how["on"], self._nodes, "node", places["on"]) if "on" in how else None
        by = self._values.rule(how["by"], places["by"]) if "by" in how else None
        return ir_test.ExpectRejected(pod=pod, node=on, rule=by, reason=how.get("reason"), span=span)

    def _number(self, pod: str, data: Any, places: dict[str, Any], span: Span) -> ir_test.Step:
        number = data.get("score", data.get("total"))
        if isinstance(number, dict):
            least, most = number.get("atLeast", -_LARGE), number.get("atMost", _LARGE)
        else:
            least = most = number
        return ir_test.ExpectNumber(
            pod=pod,
            node=self._known(data["node"], self._nodes, "node", places["node"]),
            rule=self._values.rule(data["by"], places["by"]) if "score" in data else None,
            least=least,
            most=most,
            span=span,
        )

    def _annotation(self, pod: str, data: Any, span: Span) -> ir_test.Step:
        value = None if data["value"] is None else str(data["value"])
        wanted = ir.Const(type=optional_of(STRING), span=span, value=optional(value))
        carried = asked("annotation", pod, str(data["annotation"]), span=span)
        same = ir.Call(type=BOOL, span=span, reach=Reach.CLUSTER, function="_==_", args=(carried, wanted))
        return ir_test.ExpectThat(condition=same, span=span)

    def _known(self, name: str, names: set[str], what: str, node: yaml.Node) -> str:
        if name not in names:
            raise self._values.wrong(node, unknown(name, names, f"no {what} was given as"))
        return name
