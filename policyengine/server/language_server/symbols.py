"""Who names what: every place in the files that are loaded together where a name is given, and where it is used.

Made of the syntax trees alone, so it is there for what has mistakes too. Names of the schema and of plugins are no
symbols: nobody's file defines them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from policyengine.language import syntax
from policyengine.language.syntax import Span


class SymbolKind(Enum):
    """What a symbol is; the values are the words a user reads."""

    POLICY = "policy"
    LIBRARY = "library"
    OVERLAY = "overlay"
    ALIAS = "import"
    PARAM = "param"
    LET = "let"
    FUNCTION = "function"
    RULE = "rule"
    TEST = "test"
    NODE = "node"
    POD = "pod"
    VARIABLE = "variable"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is given somewhere. `node`: the block, member, step, parameter or macro that gives it."""

    kind: SymbolKind
    name: str
    file: str
    span: Span
    node: syntax.Node = field(compare=False)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a symbol is named; of a quoted name, the quotes are part of it."""

    file: str
    span: Span
    symbol: Symbol
    given: bool = False
    """Whether the name is given here."""


class Index:
    """The occurrences of all symbols in files that are loaded together."""

    def __init__(self, occurrences: Iterable[Occurrence]) -> None:
        self._by_file: dict[str, list[Occurrence]] = {}
        self._by_symbol: dict[Symbol, list[Occurrence]] = {}
        for one in sorted(occurrences, key=lambda one: (one.file, one.span.start)):
            self._by_file.setdefault(one.file, []).append(one)
            self._by_symbol.setdefault(one.symbol, []).append(one)
        self._starts: Mapping[str, Sequence[int]] = {
            file: [one.span.start for one in found] for file, found in self._by_file.items()
        }

    def at(self, file: str, offset: int) -> Occurrence | None:
        """What is named where the cursor is; at the border of two, the one behind."""
        found = self._by_file.get(file, ())
        at = bisect_right(self._starts.get(file, ()), offset)
        return next((one for one in reversed(found[max(0, at - 2) : at]) if offset <= one.span.end), None)

    def of(self, symbol: Symbol) -> Sequence[Occurrence]:
        """Every place where the symbol is named."""
        return self._by_symbol.get(symbol, ())

    def in_file(self, file: str) -> Sequence[Occurrence]:
        """What is named in a file, in order of place."""
        return self._by_file.get(file, ())
