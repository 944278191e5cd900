"""Who names what: every place in the files that are loaded together where a name is given, and where it is used.

Made of the syntax trees alone, so it is there for what has mistakes too. Names of the schema and of plugins are no
symbols: nobody's file defines them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from policyengine.language import syntax
from policyengine.language.syntax import NameText, Span
from policyengine.language.syntax.expression_nodes import children, walk
from policyengine.server.language_server.cursor import BlockNode, blocks_of, expressions_in, variable_of


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
    """A name that is given somewhere. `node`: the block, member, step, parameter or macro that gives it.

    The rules of one name in a block are one symbol, of which each has its own `node`: they are renamed together."""

    kind: SymbolKind
    name: str
    file: str
    span: Span
    node: syntax.Node = field(compare=False)

    @property
    def place(self) -> Span:
        """Where this node gives the name."""
        return self.node.name.span if isinstance(self.node, syntax.Rule) else self.span


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a symbol is named; of a quoted name, the quotes are part of it."""

    file: str
    span: Span
    symbol: Symbol
    given: bool = False
    """Whether the name is given here."""


_NAMED = {syntax.Param: SymbolKind.PARAM, syntax.Let: SymbolKind.LET, syntax.Function: SymbolKind.FUNCTION}
_IN_TESTS = {
    "on": SymbolKind.NODE,
    "node": SymbolKind.NODE,
    "pod": SymbolKind.POD,
    "other": SymbolKind.POD,
    "rule": SymbolKind.RULE,
}
"""The fields of a test's steps that use a name -> what it names."""
_BLOCKS = {syntax.Policy: SymbolKind.POLICY, syntax.Library: SymbolKind.LIBRARY, syntax.Overlay: SymbolKind.OVERLAY}


@dataclass(eq=False)
class Scope:
    """The names that can be used in a block. `outer`: the policy's, to an overlay on it."""

    file: str
    symbol: Symbol
    names: dict[str, Symbol] = field(default_factory=dict)
    rules: dict[str, list[Symbol]] = field(default_factory=dict)
    """Those of one name, in the order written."""
    imports: Mapping[str, Symbol] = field(default_factory=dict)
    libraries: Mapping[str, Scope] = field(default_factory=dict)
    outer: Scope | None = None

    def chain(self) -> list[Scope]:
        """Itself and the scopes outside of it."""
        return [self, *(self.outer.chain() if self.outer is not None else ())]

    def find(self, name: str) -> Symbol | None:
        """A param, let or function."""
        return next((scope.names[name] for scope in self.chain() if name in scope.names), None)

    def rule(self, name: str, scores: bool = False) -> Symbol | None:
        """A filter, gang, quota or permit; a score rather, where `scores`."""
        found = next((scope.rules[name] for scope in self.chain() if name in scope.rules), [])
        return min(found, key=lambda symbol: isinstance(symbol.node, syntax.Score) is not scores, default=None)


class Scopes:
    """The scopes of files that are loaded together, and the occurrences of all their symbols."""

    def __init__(self, files: Sequence[tuple[str, syntax.File]]) -> None:
        """`files`: the name and tree of each; the names differ."""
        self._found: list[Occurrence] = []
        self._scopes: dict[tuple[str, Span], Scope] = {}
        self._libraries: dict[str, list[Scope]] = {}
        self._policies: dict[str, list[Scope]] = {}
        for file, tree in files:
            for block in blocks_of(tree):
                self._give(file, block)
        for file, tree in files:
            self._imports(file, tree)
            for block in blocks_of(tree):
                self._uses(self._scopes[file, block.span], block)
        self._found.sort(key=lambda one: (one.file, one.span.start))

    def at(self, file: str, offset: int) -> Occurrence | None:
        """What is named where the cursor is; at the border of two, the one behind."""
        found = self.in_file(file)
        at = bisect_right(found, offset, key=lambda one: one.span.start)
        return next((one for one in reversed(found[max(0, at - 2) : at]) if offset <= one.span.end), None)

    def of(self, symbol: Symbol) -> Sequence[Occurrence]:
        """Every place where the symbol is named."""
        return [one for one in self._found if one.symbol == symbol]

    def in_file(self, file: str) -> Sequence[Occurrence]:
        """What is named in a file, in order of place."""
        return [one for one in self._found if one.file == file]

    def scope(self, file: str, block: BlockNode) -> Scope:
        """The scope of a block."""
        return self._scopes[file, block.span]

    def libraries(self) -> Iterator[Symbol]:
        """Every library there is."""
        return (scope.symbol for found in self._libraries.values() for scope in found)

    def policies(self) -> Iterator[Symbol]:
        """Every policy there is."""
        return (scope.symbol for found in self._policies.values() for scope in found)

    # --- where names are given ------------------------------------------------------------------------

    def _symbol(self, kind: SymbolKind, name: NameText | syntax.Name, file: str, node: syntax.Node) -> Symbol:
        text = name.text if isinstance(name, NameText) else name.name
        symbol = Symbol(kind, text, file, name.span, node)
        self._found.append(Occurrence(file, name.span, symbol, given=True))
        return symbol

    def _use(self, file: str, span: Span, symbol: Symbol | None) -> None:
        if symbol is not None:
            self._found.append(Occurrence(file, span, symbol))

    def _give(self, file: str, block: BlockNode) -> None:
        scope = Scope(file, self._symbol(_BLOCKS[type(block)], block.name, file, block))
        self._scopes[file, block.span] = scope
        if isinstance(block, syntax.Library):
            self._libraries.setdefault(block.name.text, []).append(scope)
        elif isinstance(block, syntax.Policy):
            self._policies.setdefault(block.name.text, []).append(scope)
        for member in block.members:
            if isinstance(member, syntax.Param | syntax.Let | syntax.Function):
                scope.names.setdefault(member.name.text, self._symbol(_NAMED[type(member)], member.name, file, member))
            elif isinstance(member, syntax.Rule):
                self._rule(scope, member)
            elif isinstance(member, syntax.Test):
                self._symbol(SymbolKind.TEST, member.name, file, member)

    def _rule(self, scope: Scope, member: syntax.Rule) -> None:
        named = scope.rules.setdefault(member.name.text, [])
        first = named[0].span if named else member.name.span
        named.append(Symbol(SymbolKind.RULE, member.name.text, scope.file, first, member))
        self._found.append(Occurrence(scope.file, member.name.span, named[-1], given=True))

    def _imports(self, file: str, tree: syntax.File) -> None:
        """An import means the library of that name in its own file, else the one in another."""
        imports: dict[str, Symbol] = {}
        libraries: dict[str, Scope] = {}
        for statement in tree.imports:
            found = self._libraries.get(statement.name.text, [])
            meant = next((scope for scope in found if scope.file == file), found[0] if found else None)
            known_as = statement.alias or statement.name
            alias = Symbol(SymbolKind.ALIAS, known_as.text, file, known_as.span, statement)
            if meant is not None:
                self._use(file, statement.name.span, meant.symbol)
                libraries.setdefault(known_as.text, meant)
            if statement.alias is not None or meant is None:
                self._found.append(Occurrence(file, known_as.span, alias, given=True))
            imports.setdefault(known_as.text, alias)
        for block in blocks_of(tree):
            scope = self._scopes[file, block.span]
            scope.imports, scope.libraries = imports, libraries
            if isinstance(block, syntax.Overlay) and (policies := self._policies.get(block.policy.text)):
                scope.outer = policies[0]
                self._use(file, block.policy.span, policies[0].symbol)

    # --- where they are used --------------------------------------------------------------------------

    def _uses(self, scope: Scope, block: BlockNode) -> None:
        self._expressions(scope, block)
        for member in block.members:
            if isinstance(member, syntax.Function):
                given = {
                    one.name.text: self._symbol(SymbolKind.VARIABLE, one.name, scope.file, one)
                    for one in member.parameters
                }
                self._expression(scope, member.body, given)
            elif isinstance(member, syntax.Test):
                self._test(scope, member)
            else:
                self._expressions(scope, member)

    def _expressions(self, scope: Scope, part: syntax.Node) -> None:
        for expr in expressions_in(part):
            self._expression(scope, expr, {})

    def _expression(self, scope: Scope, whole: syntax.Expr, variables: Mapping[str, Symbol]) -> None:
        pending = [(whole, variables)]
        while pending:
            expr, known = pending.pop()
            if isinstance(expr, syntax.Name):
                self._use(scope.file, expr.span, known.get(expr.name) or scope.find(expr.name))
                continue
            if isinstance(expr, syntax.Call):
                pending += self._call(scope, expr, known)
            elif not (
                isinstance(expr, syntax.Select)
                and self._of_library(scope, expr.operand, known, expr.field, expr.field_span)
            ):
                pending += [(part, known) for part in children(expr)]

    def _call(
        self, scope: Scope, call: syntax.Call, known: Mapping[str, Symbol]
    ) -> list[tuple[syntax.Expr, Mapping[str, Symbol]]]:
        """What is named in a call itself; its parts are left, with the variables each of them sees."""
        if call.target is None:
            found = scope.find(call.function)
            self._use(scope.file, call.function_span, found if found and found.kind is SymbolKind.FUNCTION else None)
        elif self._of_library(scope, call.target, known, call.function, call.function_span):
            return [(part, known) for part in call.args]
        variable = variable_of(call)
        if variable is None:
            return [(part, known) for part in children(call)]
        inner = {**known, variable.name: self._symbol(SymbolKind.VARIABLE, variable, scope.file, call)}
        assert call.target is not None
        return [(call.target, known), *((part, inner) for part in call.args[1:])]

    def _of_library(
        self, scope: Scope, operand: syntax.Expr | None, known: Mapping[str, Symbol], name: str, span: Span
    ) -> bool:
        """Whether `operand.name` is a library's; then both are named."""
        if not isinstance(operand, syntax.Name) or operand.name in known or operand.name not in scope.imports:
            return False
        self._of_import(scope, operand.name, operand.span, name, span)
        return True

    def _of_import(self, scope: Scope, library: str, place: Span, name: str, span: Span) -> None:
        self._use(scope.file, place, scope.imports.get(library))
        meant = scope.libraries.get(library)
        self._use(scope.file, span, meant.names.get(name) if meant is not None else None)

    def _test(self, scope: Scope, test: syntax.Test) -> None:
        nodes: dict[str, Symbol] = {}
        pods: dict[str, Symbol] = {}
        find: dict[SymbolKind, Callable[[str], Symbol | None]] = {
            SymbolKind.NODE: nodes.get,
            SymbolKind.POD: pods.get,
            SymbolKind.RULE: scope.rule,
        }
        for step in test.steps:
            if isinstance(step, syntax.GivenNode):
                nodes.setdefault(step.name.text, self._symbol(SymbolKind.NODE, step.name, scope.file, step))
            elif isinstance(step, syntax.GivenPod):
                pods.setdefault(step.name.text, self._symbol(SymbolKind.POD, step.name, scope.file, step))
            elif isinstance(step, syntax.GivenParam):
                self._param(scope, step.name)
            elif isinstance(step, syntax.ExpectThat):
                self._score(scope.file, step.condition, (partial(scope.rule, scores=True), pods.get, nodes.get))
            for named, kind in _IN_TESTS.items():
                if isinstance(name := getattr(step, named, None), NameText):
                    self._use(scope.file, name.span, find[kind](name.text))
            self._expressions(scope, step)

    def _param(self, scope: Scope, name: NameText) -> None:
        library, dot, inner = name.text.partition(".")
        if not dot:
            self._use(scope.file, name.span, scope.find(name.text))
            return
        start, end = name.span.start, name.span.end
        self._of_import(scope, library, Span(start, start + len(library)), inner, Span(end - len(inner), end))

    def _score(self, file: str, condition: syntax.Expr, meant: Sequence[Callable[[str], Symbol | None]]) -> None:
        """`score("rule", "pod", "node")` names three things."""
        for expr in walk(condition):
            if isinstance(expr, syntax.Call) and expr.target is None and expr.function == "score":
                for find, argument in zip(meant, expr.args, strict=False):
                    if isinstance(argument, syntax.Literal) and isinstance(argument.value, str):
                        self._use(file, argument.span, find(argument.value))
