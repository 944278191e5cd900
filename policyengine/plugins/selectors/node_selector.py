"""Node selectors, terms and preferences, compiled: over rows for the columns, over one node for the hints.

Source: component-helpers' scheduling/corev1/nodeaffinity: terms are ORed, requirements ANDed; a term without
requirements matches nothing; a malformed one matches nothing and says so where nothing else matched.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import ValueTable
from policyengine.cluster.node_objects import Node, NodeSelector, NodeSelectorTerm
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.objects import SelectorRequirement
from policyengine.cluster.pod_objects import PodSpec, PreferredSchedulingTerm
from policyengine.framework.changes import at
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.label_selector import MalformedError, Requirement, requirement

Mask = NDArray[np.bool_]
NAME_FIELD: Final = "metadata.name"


class LabelTest:
    """One requirement over a label's column: evaluated once per distinct value, then gathered."""

    def __init__(self, requirement: Requirement) -> None:
        self.requirement = requirement
        self._table = ValueTable(requirement.holds, np.bool_, absent=requirement.holds(None))

    def mask(self, nodes: NodeTable, rows: Rows) -> Mask:
        """`bool[rows]`"""
        key = self.requirement.key
        return self._table.at(at(nodes.label_ids(key), rows), nodes.label_values(key))


@dataclass(frozen=True, slots=True)
class FieldTest:
    """`metadata.name` is, or is not, one name. Any other field reads as empty."""

    key: str
    name: str
    negated: bool

    def mask(self, nodes: NodeTable, rows: Rows) -> Mask:
        """`bool[rows]`"""
        if self.key != NAME_FIELD:
            return np.full(len(rows), (self.name == "") is not self.negated)
        mask: Mask = (rows == nodes.row_of.get(self.name, -1)) != self.negated
        return mask

    def matches(self, name: str) -> bool:
        """Whether a node of this name meets the test."""
        return ((name if self.key == NAME_FIELD else "") == self.name) is not self.negated


class Term:
    """A term whose requirements are all valid."""

    def __init__(self, labels: Sequence[Requirement], fields: Sequence[FieldTest]) -> None:
        self._labels = [LabelTest(requirement) for requirement in labels]
        self._fields = list(fields)

    def mask(self, nodes: NodeTable, rows: Rows) -> Mask:
        """`bool[rows]`"""
        mask: Mask = np.ones(len(rows), dtype=np.bool_)
        for label in self._labels:
            mask &= label.mask(nodes, rows)
        for field in self._fields:
            mask &= field.mask(nodes, rows)
        return mask

    def matches(self, node: Node) -> bool:
        """Whether the node meets all requirements."""
        return all(test.requirement.matches(node.metadata.labels) for test in self._labels) and all(
            test.matches(node.metadata.name) for test in self._fields
        )


@dataclass(frozen=True, slots=True)
class Selector:
    """A node selector: any of the terms. `problems` are those of the malformed terms, which match nothing."""

    terms: tuple[Term, ...]
    problems: tuple[str, ...] = ()

    def mask(self, nodes: NodeTable, rows: Rows) -> Mask:
        """`bool[rows]`"""
        if len(self.terms) == 1:
            return self.terms[0].mask(nodes, rows)
        mask: Mask = np.zeros(len(rows), dtype=np.bool_)
        for term in self.terms:
            mask |= term.mask(nodes, rows)
        return mask

    def matches(self, node: Node) -> bool:
        """Whether the node meets one of the terms."""
        return any(term.matches(node) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Preferences:
    """Weighted terms; a node's score is the sum of the weights of those it meets."""

    terms: tuple[tuple[int, Term], ...]
    problems: tuple[str, ...] = ()

    def scores(self, nodes: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """`int64[rows]`"""
        total = np.zeros(len(rows), dtype=np.int64)
        for weight, term in self.terms:
            total += term.mask(nodes, rows) * np.int64(weight)
        return total


def exact_labels(labels: Mapping[str, str]) -> Selector:
    """What `nodeSelector` means: every label with exactly this value; keys and values are taken as they are."""
    requirements = [Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items())]
    return Selector((Term(requirements, ()),))


def required_selectors(spec: PodSpec) -> tuple[Selector, ...]:
    """nodeSelector and required node affinity: a node must meet each of them; none where nothing is required."""
    selectors: tuple[Selector, ...] = (exact_labels(spec.node_selector),) if spec.node_selector else ()
    required = required_affinity(spec)
    return selectors if required is None else (*selectors, compile_selector(required))


def required_key(spec: PodSpec) -> Hashable:
    """Equal for specs that require the same of nodes."""
    return tuple(sorted(spec.node_selector.items())), required_affinity(spec)


def required_affinity(spec: PodSpec) -> NodeSelector | None:
    """The required node affinity as written."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def compile_selector(selector: NodeSelector) -> Selector:
    """Required node affinity, or a persistent volume's."""
    terms, problems = _compiled([(1, term) for term in selector.node_selector_terms])
    return Selector(tuple(term for _, term in terms), problems)


def compile_preferences(sources: Sequence[PreferredSchedulingTerm]) -> Preferences:
    """Preferred node affinity. Terms of weight 0 and empty ones are passed over."""
    return Preferences(*_compiled([(source.weight, source.preference) for source in sources]))


def _compiled(sources: Sequence[tuple[int, NodeSelectorTerm]]) -> tuple[tuple[tuple[int, Term], ...], tuple[str, ...]]:
    """(weight, term) of the valid terms, and what is wrong with the others."""
    terms: list[tuple[int, Term]] = []
    problems: list[str] = []
    for weight, source in sources:
        if weight == 0 or is_empty(source):
            continue
        try:
            labels = [requirement(one, comparing=True) for one in source.match_expressions]
            terms.append((weight, Term(labels, [_compile_field(one) for one in source.match_fields])))
        except MalformedError as error:
            problems.append(str(error))
    return tuple(terms), tuple(problems)


def is_empty(term: NodeSelectorTerm) -> bool:
    """Whether the term has no requirement, and so selects nothing."""
    return not term.match_expressions and not term.match_fields


def _compile_field(source: SelectorRequirement) -> FieldTest:
    if source.operator not in ("In", "NotIn"):
        raise MalformedError(f"`{source.key}`: `{source.operator}` is not an operator for fields")
    if len(source.values) != 1:
        raise MalformedError(f"`{source.key}`: `{source.operator}` needs exactly one value for a field")
    return FieldTest(source.key, source.values[0], source.operator == "NotIn")
