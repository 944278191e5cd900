"""Where an expression stands: the names it may use, what is known to be there, and where its findings go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.definitions import MOST_FACTS, Definitions, Fact, Facts
from policyengine.language.checking.findings import Report
from policyengine.language.diagnostics import Fix
from policyengine.language.ir.ir_walk import is_error
from policyengine.language.schema import ROOTS
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, Kind, Type

Named = syntax.Param | syntax.Let | syntax.Function


class Declared(Struct, frozen=True):
    """A function by its full name. `names`: where its body stands. `result` None: it was reported, calls are silent."""

    name: str
    member: syntax.Function
    parameters: tuple[ir.Local, ...]
    result: Type | None
    names: Names
    size: int = 0
    """How many parts the body has."""


class Names(Struct, frozen=True, eq=False):
    """The params, lets and functions of one block, and those of the libraries it imports.

    A name is what is written in the block; a full name has the block's prefix: `safe.` for a library.
    """

    definitions: Definitions
    """What full names mean."""
    own: Mapping[str, Named]
    """What the block itself defines."""
    visible: frozenset[str]
    """The words that mean something here, besides the schema's."""
    libraries: Mapping[str, Names | None] = field(default_factory=dict)
    """Those that are imported, by the names they have here; None for one that was reported."""
    outer: Names | None = None
    """The block whose names are visible too: the policy's, to an overlay of it."""
    prefix: str = ""
    functions: dict[str, Declared] = field(default_factory=dict)

    def let(self, name: str) -> ir.Let | None:
        """A let by the name that is written; None if there is none."""
        block, inner = self._block_of(name)
        return block.definitions.lets.get(block.prefix + inner) if block is not None else None

    def param(self, name: str) -> ir.Param | None:
        """A param by the name that is written; None if there is none, or it was reported."""
        block, inner = self._block_of(name)
        return block.definitions.params.get(block.prefix + inner) if block is not None else None

    def function(self, name: str) -> Declared | None:
        """A function by the name that is written; None if there is none."""
        block, inner = self._block_of(name)
        return block.functions.get(inner) if block is not None else None

    def _block_of(self, name: str) -> tuple[Names | None, str]:
        """The block that defines a name, and its name there. What a library imports is not its own."""
        if name in self.own:
            return self, name
        library, dot, inner = name.rpartition(".")
        found = self.libraries.get(library) if dot else None
        if found is not None and inner in found.own:
            return found, inner
        return self.outer._block_of(name) if self.outer is not None else (None, name)


class Context(Struct, frozen=True):
    """Where an expression stands. One place differs from another in the variables and guards around it."""

    report: Report
    names: Names
    definitions: Definitions
    """What full names mean here: in a function's body, what they mean to its caller."""
    checker: Callable[[Context, syntax.Expr, Type | None], ir.Expr]
    """Checks an expression: `expression.check_expression`, or a form of it that knows more functions."""
    rule: str = ""
    locals: Mapping[str, ir.Expr] = field(default_factory=dict)
    """The variables in scope; in a function's body, its arguments."""
    facts: Facts = frozenset()
    """What the guards around establish, and what is there in any case: a map has the keys that a macro goes through."""
    victim: bool = False
    """Whether the expression is about a victim of preemption."""
    prefix: str = ""
    """In a function's body: what its variables' names begin with, so that none is one of an argument's."""
    callers: int = 0
    """How many functions' bodies stand around it."""

    def check(self, expr: syntax.Expr, expected: Type | None = None) -> ir.Expr:
        """The typed tree of an expression. `expected` steers literals only; the caller compares types."""
        return self.checker(self, expr, expected)

    def check_bool(self, expr: syntax.Expr, why: str, of_text: str = "") -> ir.Expr:
        """The typed tree of an expression that has to be a bool; `why` begins the finding about another one, and
        `of_text` ends that about a string."""
        checked = self.check(expr)
        if is_error(checked) or checked.type == BOOL:
            return checked
        hint = of_text if checked.type.kind is Kind.STRING else ""
        return self.failed("PE1005", f"{why}, this is {checked.type}{hint}", expr.span)

    def failed(self, code: str, message: str, span: Span, fix: Fix | None = None) -> ir.Expr:
        """Reports an expression, and returns what stands for it."""
        return self.report.error(code, message, span, fix)

    def knowing(self, *facts: Fact) -> Context:
        """The same place with more facts; with too many none is added."""
        joined = self.facts.union(facts)
        return self if len(joined) > MOST_FACTS else replace(self, facts=joined)

    def behind(self, condition: ir.Expr | None, truth: bool = True) -> Context:
        """The same place where the condition, if there is one, is `truth`."""
        if condition is None or is_error(condition):
            return self
        return self.knowing(*self.definitions.established(condition, truth))

    def binding(self, *variables: ir.Local) -> Context:
        """The same place inside a macro."""
        bound = {variable.name.removeprefix(self.prefix): variable for variable in variables}
        return replace(self, locals={**self.locals, **bound})

    def is_taken(self, name: syntax.NameText) -> bool:
        """Whether a new name is visible already; reported then."""
        if name.text in ROOTS:
            meaning = "a name of the schema"
        elif name.text in self.locals:
            meaning = "a variable around it"
        elif name.text in self.names.visible:
            meaning = "a name of the policy"
        else:
            return False
        self.report.error("PE1009", f"`{name.text}` is taken: it is {meaning}", name.span)
        return True
