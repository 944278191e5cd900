"""What the parts of the checker share: where findings go, which names are visible, what is known to be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import REDEFINED
from policyengine.language.checking.guards import MOST_FACTS, Fact, Facts, established
from policyengine.language.checking.resolved_names import Definitions
from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Related, Severity, printable
from policyengine.language.ir.ir_walk import is_error
from policyengine.language.schema import ROOTS
from policyengine.language.suggestion import closest
from policyengine.language.syntax import Span
from policyengine.language.types import ERROR, Type

LONGEST_MESSAGE = 400
MOST_CANDIDATES = 50_000
"""How many names are compared with misspelt ones in one file."""


class Report(Struct):
    """Collects findings of one file."""

    file: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    types: dict[Span, Type] = field(default_factory=dict)
    """The type of each expression of the file that was checked, by its place: what editors show."""
    _compared: int = 0

    def apart(self) -> Report:
        """Another report of the same file, with findings of its own. What is learnt of types is shared."""
        return Report(self.file, types=self.types)

    def error(
        self, code: str, message: str, span: Span, fix: Fix | None = None, related: tuple[Related, ...] = ()
    ) -> None:
        """A finding that keeps the policy from loading."""
        message = printable(message)
        message = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
        self.diagnostics.append(Diagnostic(code, Severity.ERROR, message, self.file, span, fix, related))

    def closest(self, word: str, known: Iterable[str]) -> str | None:
        """The known name that was probably meant, None without one; after many guesses none is made."""
        names = list(known)
        self._compared += len(names)
        return closest(word, names) if self._compared <= MOST_CANDIDATES else None

    def failed(self, code: str, message: str, span: Span, fix: Fix | None = None) -> ir.Expr:
        """An error about an expression, and what stands for it: its type silences what follows."""
        self.error(code, message, span, fix)
        return error_at(span)


class Context(Struct, frozen=True):
    """Where an expression stands: variables in scope (of a function called, its arguments), the guards around it, the
    rule's name, and whether it is about a victim."""

    locals: Mapping[str, ir.Expr] = field(default_factory=dict)
    facts: Facts = frozenset()
    """What the guards around establish, and what is there in any case: a map has the keys that a macro goes through."""
    rule: str = ""
    victim: bool = False
    prefix: str = ""
    """In a function's body: what its variables' names begin with, so that none is one of an argument's."""

    def knows(self, fact: Fact) -> bool:
        """Whether what the fact tells of is sure to be there."""
        return fact in self.facts

    def knowing(self, *facts: Fact) -> Context:
        """The same place with more facts; with too many none is added."""
        joined = self.facts.union(facts)
        return self if len(joined) > MOST_FACTS else replace(self, facts=joined)

    def behind(self, condition: ir.Expr, truth: bool, names: Names) -> Context:
        """The same place where the condition is `truth`."""
        return self if is_error(condition) else self.knowing(*established(condition, truth, names))

    def binding(self, *variables: ir.Local) -> Context:
        """The same place inside a macro."""
        bound = {variable.name.removeprefix(self.prefix): variable for variable in variables}
        return replace(self, locals={**self.locals, **bound})


class Names(Protocol):
    """The names of a block. A name is what is written; a let's or param's full name says which block it is of."""

    @property
    def definitions(self) -> Definitions:
        """What full names mean."""

    def let(self, name: str) -> ir.Let | None:
        """A let by the name that is written; None if there is none."""

    def param(self, name: str) -> ir.Param | None:
        """A param by the name that is written; None if there is none."""

    def function(self, name: str) -> Declared | None:
        """A function by the name that is written; None if there is none."""

    def is_library(self, name: str) -> bool:
        """Whether a word is the name of an imported library."""

    def not_in_library(self, library: str, name: str, span: Span) -> ir.Expr:
        """Reports what an imported library does not have."""

    def visible(self) -> Set[str]:
        """The words that mean something besides the schema's."""

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let by its full name; None if there is none."""

    def let_facts(self, name: str, truth: bool) -> Facts:
        """What is there wherever the let is `truth`."""

    def reads(self, expr: ir.Expr) -> frozenset[tuple[str, ...]]:
        """The paths an expression reads, through the lets it names too."""


class Declared(Struct, frozen=True):
    """A function by its full name. `names`: where its body stands. `result` None: it was reported, calls are silent."""

    name: str
    member: syntax.Function
    parameters: tuple[ir.Local, ...]
    result: Type | None
    names: Names

    @property
    def signature(self) -> str:
        """As one would call it: `f(a: int, b: cpu)`."""
        return f"{self.name}({', '.join(f'{local.name}: {local.type}' for local in self.parameters)})"


class Checks(Protocol):
    """The expression checker as its parts see it."""

    report: Report
    names: Names

    def check(self, expr: syntax.Expr, context: Context, expected: Type | None = None) -> ir.Expr:
        """The typed tree of an expression. `expected` steers literals only; the caller compares types."""

    def on(self, report: Report, names: Names) -> Checks:
        """A checker that reports elsewhere, and knows other names."""


def error_at(span: Span) -> ir.Const:
    """What stands for an expression that was reported."""
    return ir.Const(type=ERROR, span=span, value=None)


def replacing(span: Span, text: str) -> Fix:
    """A fix that writes something else in a place."""
    return Fix(f"write `{text}`", (Edit(span, text),))


def wrapped(span: Span, before: str, after: str, title: str) -> Fix:
    """A fix that writes something around a place."""
    return Fix(title, (Edit(Span(span.start, span.start), before), Edit(Span(span.end, span.end), after)))


def taken(checks: Checks, name: syntax.NameText, context: Context) -> bool:
    """Reports a new name that is visible already."""
    if name.text in ROOTS:
        meaning = "a name of the schema"
    elif name.text in context.locals:
        meaning = "a variable around it"
    elif name.text in checks.names.visible():
        meaning = "a name of the policy"
    else:
        return False
    checks.report.error(REDEFINED, f"`{name.text}` is taken: it is {meaning}", name.span)
    return True
