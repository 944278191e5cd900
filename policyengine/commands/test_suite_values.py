"""The values of a suite's test: a case's values put in, params in their grain, names that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from policyengine.checked_yaml import plain, wrong_at
from policyengine.compiler.params import ParamError, convert
from policyengine.language import ir
from policyengine.language.checking.param_checks import outside
from policyengine.language.suggestion import closest
from policyengine.language.syntax import Span

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
