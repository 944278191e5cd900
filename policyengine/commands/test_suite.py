"""Suites: tests of a policy in YAML (`*.test.yaml`), valid by `test_suite.schema.json`, as the steps of in-file tests.

A suite is data from outside: no aliases, no anchors, no tags, bounded size and depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from policyengine.cluster.objects import KINDS, ObjectError, decode
from policyengine.commands.manifests import read_yaml
from policyengine.compiler.params import ParamError, convert
from policyengine.language import ir, ir_test
from policyengine.language.checking.given import FOLLOWS, NODE_FIELDS, OF_ONE_CONTAINER, POD_FIELDS, wrong_value
from policyengine.language.checking.params import outside
from policyengine.language.diagnostics import Source
from policyengine.language.suggestion import closest
from policyengine.language.syntax import Span
from policyengine.language.types import DURATION, Type
from policyengine.language.values import EvaluationError, parse_timestamp
from policyengine.scheduler.messages import Message, ObjectObserved
from policyengine.scheduler.policy_test import TestedPolicy

SUFFIX: Final = ".test.yaml"
_HOLE = re.compile(r"\$\{([^}]*)\}")
_LARGE: Final = 2**62
_SCALARS = yaml.constructor.SafeConstructor()


class SuiteError(ValueError):
    """A suite that cannot be used: one sentence, with line and column where there are some."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as written; its tests have a meaning once the policy is known."""

    source: Source
    policy_file: Path
    policy_name: str | None
    root: yaml.MappingNode

    def tested(self, of: TestedPolicy) -> TestedPolicy:
        """The policy with the tests of this suite instead of its own.

        Raises:
            SuiteError: a test names or gives something that does not exist, or has the wrong form.
        """
        reader = _Reader(self.source, of.policy, of.catalogue.keys())
        tests, objects = reader.tests(_fields(self.root))
        return replace(of, tests=tests, suite=self.source.file, objects=objects)


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of suites."""
    text = files("policyengine.commands").joinpath("test_suite.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def read_suite(path: Path) -> Suite:
    """Read a suite and hold it against the schema.

    Raises:
        SuiteError: it cannot be read, is no YAML, or is not valid.
    """
    text, documents = read_yaml(path)
    source = Source(str(path), text)
    if len(documents) != 1 or not isinstance(documents[0], yaml.MappingNode):
        raise SuiteError("a suite is one YAML document with `tests`")
    root = documents[0]
    _each_key_once(source, root)
    _validate(source, root)
    fields = _fields(root)
    named = fields.get("policy")
    file = path.parent / named.value if named else path.with_name(path.name.removesuffix(SUFFIX) + ".policy")
    name = fields.get("name")
    return Suite(source, file, name.value if name else None, root)


def _each_key_once(source: Source, node: yaml.Node) -> None:
    """YAML lets the last of two equal keys win; an expectation would be lost without a word."""
    seen: set[str] = set()
    for key, value in _pairs(node):
        if not isinstance(key, yaml.ScalarNode):
            raise _wrong(source, key, "a key is a text")
        if key.value in seen:
            raise _wrong(source, key, f"the key `{key.value}` is there twice")
        seen.add(key.value)
        _each_key_once(source, value)
    for item in _items(node):
        _each_key_once(source, item)


def _validate(source: Source, root: yaml.MappingNode) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    found = best_match(Draft202012Validator(schema()).iter_errors(_plain(root)))
    if found is None:
        return
    node: yaml.Node = root
    for step in found.absolute_path:
        if isinstance(node, yaml.MappingNode):
            node = _fields(node).get(str(step), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
    path = ".".join(map(str, found.absolute_path)) or "the suite"
    text = str(found.message).replace("'", "`")
    raise _wrong(source, node, f"`{path}`: {text[:200]}")


def _wrong(source: Source, node: yaml.Node, message: str) -> SuiteError:
    line, column = source.line_column(node.start_mark.index)
    return SuiteError(f"line {line}, column {column}: {message}")


def _fields(node: yaml.Node | None) -> dict[str, Any]:
    """Key -> node."""
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _plain(node: yaml.Node) -> Any:
    """A node as the data it is. Times stay text, as in JSON, and so do `on` and `no`, as in YAML 1.2."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    is_word = node.tag == "tag:yaml.org,2002:bool" and node.value.lower() not in ("true", "false")
    if is_word or node.tag == "tag:yaml.org,2002:timestamp":
        return node.value
    return _SCALARS.construct_object(node)


class _Reader:
    """Makes steps of the tests of one suite."""

    def __init__(self, source: Source, policy: ir.Policy, plugins: Iterable[str]) -> None:
        self._source = source
        self._policy = policy
        groups = (policy.filters, policy.scores, policy.gangs, policy.quotas, policy.permits)
        self._rules = {str(rule.name) for rules in groups for rule in rules} | set(plugins)
        self._case: dict[str, Any] = {}

    def tests(self, root: dict[str, Any]) -> tuple[tuple[ir_test.Test, ...], dict[str, tuple[Message, ...]]]:
        """The tests, a case each, and the further objects of each."""
        tests: dict[str, ir_test.Test] = {}
        objects: dict[str, tuple[Message, ...]] = {}
        for node in root["tests"].value:
            fields = _fields(node)
            for case in fields["cases"].value if "cases" in fields else [None]:
                self._case = _plain(case) if case is not None else {}
                name = self.key(fields["name"])
                if case is not None and "${" not in fields["name"].value:
                    name += f" ({', '.join(f'{key} {value}' for key, value in self._case.items())})"
                if name in tests:
                    raise _wrong(self._source, fields["name"], f"another test is called `{name}`")
                steps = tuple(_Test(self, root, fields).steps())
                tests[name] = ir_test.Test(name=name, steps=steps, span=span_of(case or fields["name"]))
                objects[name] = tuple(self._object(one) for one in _items(fields.get("objects")))
        return tuple(tests.values()), objects

    def _object(self, node: yaml.Node) -> Message:
        item = self.value(node)
        kind = KINDS.get(item["kind"])
        if kind is None or item["kind"] in ("Node", "Pod"):
            known = ", ".join(name for name in KINDS if name not in ("Node", "Pod"))
            raise _wrong(self._source, node, f"`{item['kind']}` is no kind that a test gives; there are {known}")
        try:
            return ObjectObserved(item["kind"], decode(kind, item))
        except ObjectError as error:
            raise _wrong(self._source, node, str(error)) from None

    # --- values ---------------------------------------------------------------------------------------

    def value(self, node: yaml.Node) -> Any:
        """The data of a node, the case's values put in."""
        return self._substituted(_plain(node), node)

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
        if name in self._case:
            return self._case[name]
        known = ", ".join(f"`{key}`" for key in self._case) or "nothing"
        raise self.wrong(node, f"no case gives `{name}`; this one gives {known}")

    def wrong(self, node: yaml.Node, message: str) -> SuiteError:
        """What is wrong, with its place."""
        return _wrong(self._source, node, message)

    def param(self, name: str, node: yaml.Node) -> object:
        """A param's value in its grain."""
        param = next((one for one in self._policy.params if one.name == name), None)
        if param is None:
            raise self.wrong(node, _unknown(name, [one.name for one in self._policy.params], "no param is called"))
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
            raise self.wrong(node, _unknown(name, self._rules, "no rule or plugin is called"))
        return name


class _Test:
    """One test, or case, on its way to steps."""

    def __init__(self, reader: _Reader, root: dict[str, Any], fields: dict[str, Any]) -> None:
        self._reader = reader
        self._root = root
        self._test = fields
        self._nodes: set[str] = set()
        self._pods: set[str] = set()
        self._standing: set[str] = set()

    def steps(self) -> Iterator[ir_test.Step]:
        """The steps in order: what the suite gives, what the test gives, then its steps."""
        yield from self._params(self._root.get("params"))
        yield from self._part({"nodes": self._root["nodes"]} if "nodes" in self._root else {})
        yield from self._part(self._test)
        for step in _items(self._test.get("steps")):
            yield from self._part(_fields(step))

    def _part(self, fields: dict[str, Any]) -> Iterator[ir_test.Step]:
        if "after" in fields:
            node = fields["after"]
            yield ir_test.After(duration=self._duration(node), span=span_of(node))
        if "now" in fields:
            yield self._now(fields["now"])
        yield from self._params(fields.get("params"))
        for key, value in _pairs(fields.get("nodes")):
            yield self._node(key, value)
        for key, value in _pairs(fields.get("pods")):
            yield self._pod(key, value)
        for item in _items(fields.get("expect")):
            yield self._expectation(item)

    # --- given ----------------------------------------------------------------------------------------

    def _duration(self, node: yaml.Node) -> int:
        try:
            value = convert(self._reader.value(node), DURATION, "after")
        except ParamError:
            raise self._reader.wrong(node, f"`{node.value}` is no duration; write `10s` or `5min`") from None
        assert isinstance(value, int)
        return value

    def _now(self, node: yaml.Node) -> ir_test.Step:
        try:
            return ir_test.GivenNow(now=parse_timestamp(str(self._reader.value(node))), span=span_of(node))
        except EvaluationError as error:
            raise self._reader.wrong(node, str(error)) from None

    def _params(self, node: yaml.Node | None) -> Iterator[ir_test.Step]:
        for key, value in _pairs(node):
            yield ir_test.GivenParam(name=key.value, value=self._reader.param(key.value, value), span=span_of(key))

    def _node(self, key: yaml.Node, value: yaml.Node) -> ir_test.Step:
        name = self._name(key)
        self._nodes.add(name)
        fields = self._given(value, NODE_FIELDS, "node")
        return ir_test.GivenNode(name=name, fields=fields, span=span_of(key))

    def _pod(self, key: yaml.Node, value: yaml.Node) -> ir_test.Step:
        name = self._name(key)
        if name in self._pods:
            raise self._reader.wrong(key, f"the pod `{name}` is given twice")
        self._pods.add(name)
        fields = self._given(value, {**POD_FIELDS, "on": _TEXT}, "pod")
        on = fields.pop("on", None)
        if on is not None:
            self._known(str(on), self._nodes, "node", _fields(value)["on"])
            self._standing.add(name)
        return ir_test.GivenPod(name=name, on=None if on is None else str(on), fields=fields, span=span_of(key))

    def _name(self, key: yaml.Node) -> str:
        return self._reader.key(key)

    def _given(self, node: yaml.Node, known: Mapping[str, Type], what: str) -> dict[str, object]:
        fields: dict[str, object] = self._reader.value(node) or {}
        places = {self._name(key): (key, value) for key, value in _pairs(node)}
        for name, value in fields.items():
            key, place = places[name]
            if name not in known:
                why = FOLLOWS[what].get(name)
                message = f"`{name}` is not given: it {why}" if why else None
                raise self._reader.wrong(key, message or _unknown(name, known, f"a given {what} has no field"))
            if problem := wrong_value(value, known[name]):
                raise self._reader.wrong(place, f"`{name}` is {problem}")
        if "containers" in fields and (doubled := [name for name in OF_ONE_CONTAINER if name in fields]):
            message = f"`{doubled[0]}` is said of each of the `containers`, or of the pod, not of both"
            raise self._reader.wrong(node, message)
        return fields

    # --- expected -------------------------------------------------------------------------------------

    def _expectation(self, node: yaml.Node) -> ir_test.Step:
        places, data, span = _fields(node), self._reader.value(node), span_of(node)
        if "gang" in data:
            gang = data["gang"]
            counts = {name: gang.get(name) for name in ("size", "bound", "waiting")}
            return ir_test.ExpectGang(key=gang["key"], **counts, span=span)
        pod = self._known(data["pod"], self._pods, "pod", places["pod"])
        if "on" in data:
            return ir_test.ExpectOn(pod=pod, node=self._known(data["on"], self._nodes, "node", places["on"]), span=span)
        if "node" in data:
            return self._number(pod, data, places, span)
        if pod in self._standing:
            raise self._reader.wrong(places["pod"], f"`{pod}` is given on a node: it is never queued")
        if "before" in data:
            other = self._known(data["before"], self._pods - {pod} - self._standing, "other pod", places["before"])
            return ir_test.ExpectBefore(pod=pod, other=other, span=span)
        if "waits" in data:
            return ir_test.ExpectWaits(pod=pod, span=span)
        return self._rejected(pod, data["rejected"], places["rejected"], span)

    def _rejected(self, pod: str, data: Any, node: yaml.Node, span: Span) -> ir_test.Step:
        how, places = (data, _fields(node)) if isinstance(data, dict) else ({}, {})
        on = self._known(how["on"], self._nodes, "node", places["on"]) if "on" in how else None
        by = self._reader.rule(how["by"], places["by"]) if "by" in how else None
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
            rule=self._reader.rule(data["by"], places["by"]) if "score" in data else None,
            least=least,
            most=most,
            span=span,
        )

    def _known(self, name: str, names: set[str], what: str, node: yaml.Node) -> str:
        if name not in names:
            raise self._reader.wrong(node, _unknown(name, names, f"no {what} was given as"))
        return name


_TEXT = POD_FIELDS["namespace"]


def span_of(node: yaml.Node) -> Span:
    """Where a node stands in the suite's text."""
    return Span(node.start_mark.index, node.end_mark.index)


def _items(node: yaml.Node | None) -> list[Any]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _pairs(node: yaml.Node | None) -> list[tuple[Any, Any]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def _unknown(name: str, known: Any, absent: str) -> str:
    close = closest(name, list(known))
    return f"{absent} `{name}`" + (f"; did you mean `{close}`?" if close else "")
