"""A CEL expression from outside (a device selector, say), parsed once and evaluated over many values.

As `policyengine.evaluate`, but the values of names are taken as they are: maps may answer for absent keys
themselves (`__missing__`), and quantities and versions of the Kubernetes libraries may stand among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from policyengine.language.evaluate_dynamic import DynamicLowering
from policyengine.language.evaluate_tree import NoNames, TreeEvaluator
from policyengine.language.parse_expression import parse_expression
from policyengine.language.values import EvaluationError

_KEPT = 1024


class DynamicExpression:
    """An expression whose types are found while it is evaluated."""

    __slots__ = ("_tree",)

    def __init__(self, text: str) -> None:
        """
        Raises:
            EvaluationError: the text is no expression.
        """
        syntax, findings = parse_expression(text)
        if syntax is None or findings:
            raise EvaluationError(findings[0].message if findings else "this is no expression")
        self._tree = DynamicLowering(text, frozenset()).lower(syntax)

    def value(self, names: Mapping[str, object]) -> object:
        """The value, given those of the free names.

        Raises:
            EvaluationError: it has none.
        """
        return TreeEvaluator(_Names(names)).value(self._tree)


class _Names(NoNames):
    """Free names and their values."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def field(self, path: tuple[str, ...]) -> object:
        """The value of a name."""
        return self._values[path[0]] if path[0] in self._values else super().field(path)


@lru_cache(maxsize=_KEPT)
def parsed(text: str) -> DynamicExpression | str:
    """The expression, or why the text is none; the last ones are kept."""
    try:
        return DynamicExpression(text)
    except EvaluationError as error:
        return str(error)
