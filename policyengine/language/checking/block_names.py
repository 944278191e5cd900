"""The names of a block: its params, lets and functions, and those of the libraries it imports.

Lets and functions may be written in any order. They are checked after those they name, so that no check has to go
from let to let by recursion, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import LET_CYCLE, REDEFINED, UNKNOWN_NAME
from policyengine.language.checking.context import Context, Declared, Report, error_at, replacing
from policyengine.language.checking.expression import ExpressionChecker
from policyengine.language.checking.function_calls import declared
from policyengine.language.checking.guards import Facts
from policyengine.language.checking.macros import FOLDS
from policyengine.language.checking.param_checks import check_param
from policyengine.language.checking.resolved_names import Definitions
from policyengine.language.diagnostics import Related
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.schema import ROOTS
from policyengine.language.syntax.expression_nodes import names_in, walk

Named = syntax.Param | syntax.Let | syntax.Function
_SPECIAL = frozenset({"has", "toQuantity", "optMap", "optFlatMap", *FOLDS})
_BUILT_IN = _SPECIAL | {row.name for row in FUNCTIONS.values() if row.style is not Style.OPERATOR}


class BlockNames:
    """Params, lets and functions of one block; implements `context.Names`.

    A name is what is written in the block; a full name has the block's prefix: `safe.` for a library.
    """

    def __init__(
        self,
        report: Report,
        members: Sequence[syntax.Member],
        definitions: Definitions,
        *,
        broken: Iterable[str] = (),
        libraries: Mapping[str, BlockNames | None] | None = None,
        outer: BlockNames | None = None,
        prefix: str = "",
        file: str = "",
    ) -> None:
        """Checks the members.

        Arguments:
            broken: names that members which did not parse would have defined; their use is no finding.
            libraries: those that are imported, by the names they have here; None for one that was reported.
            outer: the block whose names are visible too: the policy's, to an overlay of it.
            prefix: what full names begin with.
            file: where an overlay stands, '' for the policy's own file.
        """
        self.report = report
        self.definitions = definitions
        self.libraries = libraries or {}
        self._outer, self._prefix, self._file = outer, prefix, file
        self._functions: dict[str, Declared] = {}
        named = [member for member in members if isinstance(member, syntax.Param | syntax.Let | syntax.Function)]
        self._own = self._claimed(named)
        around = outer.visible() if outer is not None else frozenset()
        self._all = frozenset((*(member.name.text for member in named), *broken, *self.libraries)) | around
        self.checker = ExpressionChecker(report, self)
        for name, member in self._own.items():
            if isinstance(member, syntax.Param):
                param = check_param(self.checker, member, prefix + name)
                if param is not None:
                    definitions.params[param.name] = param
        self._check_in_order({name: m for name, m in self._own.items() if not isinstance(m, syntax.Param)})

    def _claimed(self, named: Iterable[Named]) -> dict[str, Named]:
        """Each name with the first member that takes it; the others are reported."""
        claimed: dict[str, Named] = {}
        for member in named:
            name = member.name
            meaning = self._taken(name.text, isinstance(member, syntax.Function))
            if meaning is not None:
                self.report.error(REDEFINED, f"`{name.text}` is taken: it is {meaning}", name.span)
            elif name.text in claimed:
                first = Related(claimed[name.text].name.span, "defined here first")
                self.report.error(REDEFINED, f"`{name.text}` is defined twice", name.span, related=(first,))
            else:
                claimed[name.text] = member
        return claimed

    def _taken(self, name: str, function: bool) -> str | None:
        """What a name means outside of the block; None where it is free."""
        if name in ROOTS:
            return "a name of the schema"
        if function and name in _BUILT_IN:
            return "a function of the language"
        if name in self.libraries:
            return "an imported library"
        if self._outer is not None and name in self._outer.visible():
            return "a name of the policy"
        return None

    def _check_in_order(self, members: Mapping[str, Named]) -> None:
        for name, in_cycle in in_order({name: _needs(member) for name, member in members.items()}):
            member = members[name]
            if isinstance(member, syntax.Function):
                self._function(name, member, in_cycle)
            elif isinstance(member, syntax.Let):
                self._let(name, member, in_cycle)

    def _let(self, name: str, member: syntax.Let, in_cycle: tuple[str, ...]) -> None:
        full = self._prefix + name
        if in_cycle:
            message = f"`{name}` needs its own value: {_shown(in_cycle)}"
            self.report.error(LET_CYCLE, message, member.name.span)
            value: ir.Expr = error_at(member.value.span)
        else:
            value = self.checker.check(member.value, Context(rule=full))
        self.definitions.define(ir.Let(name=full, value=value, span=member.span, file=self._file))

    def _function(self, name: str, member: syntax.Function, in_cycle: tuple[str, ...]) -> None:
        if in_cycle:
            message = f"`{name}` calls itself: {_shown(in_cycle)}; functions do not recurse"
            self.report.error(LET_CYCLE, message, member.name.span)
            self._functions[name] = Declared(self._prefix + name, member, (), None, self)
        else:
            self._functions[name] = declared(self.checker, member, self._prefix + name)

    # --- context.Names --------------------------------------------------------------------------------

    def let(self, name: str) -> ir.Let | None:
        """A let by the name that is written; None if there is none."""
        if name in self._own:
            return self.definitions.lets.get(self._prefix + name)
        library, inner = self._in_library(name)
        if library is not None:
            return library.let(inner)
        return self._outer.let(name) if self._outer is not None else None

    def param(self, name: str) -> ir.Param | None:
        """A param by the name that is written; None if there is none, or it was reported."""
        if name in self._own:
            return self.definitions.params.get(self._prefix + name)
        library, inner = self._in_library(name)
        if library is not None:
            return library.param(inner)
        return self._outer.param(name) if self._outer is not None else None

    def function(self, name: str) -> Declared | None:
        """A function by the name that is written; None if there is none."""
        if name in self._own:
            return self._functions.get(name)
        library, inner = self._in_library(name)
        if library is not None:
            return library.function(inner)
        return self._outer.function(name) if self._outer is not None else None

    def _in_library(self, name: str) -> tuple[BlockNames | None, str]:
        """The library that a name with a dot is of, and its name there. What a library imports is not its own."""
        library, dot, inner = name.rpartition(".")
        found = self.libraries.get(library) if dot else None
        return (found, inner) if found is not None and inner in found.own() else (None, inner)

    def own(self) -> frozenset[str]:
        """What the block itself defines."""
        return frozenset(self._own)

    def is_library(self, name: str) -> bool:
        """Whether a word is the name of an imported library."""
        return name in self.libraries

    def visible(self) -> frozenset[str]:
        """The words that mean something here, besides the schema's."""
        return self._all

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let by its full name; None if there is none."""
        return self.definitions.let_value(name)

    def let_facts(self, name: str, truth: bool) -> Facts:
        """What is there wherever the let is `truth`."""
        return self.definitions.let_facts(name, truth)

    def reads(self, expr: ir.Expr) -> frozenset[tuple[str, ...]]:
        """The paths an expression reads, through the lets it names too."""
        return self.definitions.reads(expr)

    def params(self) -> tuple[ir.Param, ...]:
        """Every param there is, those of imported libraries too."""
        return tuple(self.definitions.params.values())

    # --- what is said of names ------------------------------------------------------------------------

    def was_reported(self, name: str) -> bool:
        """Whether the name means something, but no param: then nothing more is to be said of it."""
        return name in self._all and self.param(name) is None

    def not_in_library(self, library: str, name: str, span: syntax.Span) -> ir.Expr:
        """Reports what an imported library does not have, unless the library itself was reported."""
        found = self.libraries[library]
        if found is None or name in found.visible():
            return error_at(span)
        close = self.report.closest(name, found.own())
        hint = f"; did you mean `{library}.{close}`?" if close else ""
        fix = replacing(span, close) if close else None
        return self.report.failed(UNKNOWN_NAME, f"`{library}` has no `{name}`{hint}", span, fix)


def _needs(member: Named) -> frozenset[str]:
    """The words a let's value or a function's body uses."""
    if isinstance(member, syntax.Param):
        return frozenset()
    body = member.body if isinstance(member, syntax.Function) else member.value
    called = {part.function for part in walk(body) if isinstance(part, syntax.Call) and part.target is None}
    return names_in(body) | called


def _shown(cycle: tuple[str, ...]) -> str:
    shown = cycle if len(cycle) <= 8 else (*cycle[:6], "…", cycle[-1])
    return " -> ".join(f"`{name}`" for name in shown)


def in_order(needs: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every name after those it needs; one in a cycle comes with the cycle (`a b a`), once a cycle.

    The rest of a cycle follows without one: only the first of it is reported.
    """
    done: set[str] = set()
    for root in needs:
        path: dict[str, Iterator[str]] = {}
        current: str | None = root if root not in done else None
        cyclic: dict[str, tuple[str, ...]] = {}
        while current is not None or path:
            if current is not None:
                path[current] = iter(sorted(needs[current] & needs.keys()))
                current = None
            name = next(reversed(path))
            for needed in path[name]:
                if needed in path and needed not in cyclic:
                    names = list(path)
                    cyclic[needed] = (*names[names.index(needed) :], needed)
                elif needed not in done and needed not in path:
                    current = needed
                    break
            else:
                path.popitem()
                done.add(name)
                yield name, cyclic.get(name, ())
