"""What names mean once they are resolved: the params and lets of a policy with all it imports, by their full names.

A let of a library is called `safe.x` here, one of an overlay `tenant.x`, whatever they are called where they are
used. Lets come in the order in which they need each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from policyengine.language import ir
from policyengine.language.checking.guards import MOST_FACTS, Facts, established
from policyengine.language.ir.ir_walk import is_error, key, walk
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL

MOST_CALLS = 1000
"""How many calls of functions a policy may make in all, those in functions counted wherever they are called."""


class Definitions:
    """The params and lets of one policy or library; implements `guards.Known`."""

    def __init__(self, owner: str, imported: Iterable[Definitions] = ()) -> None:
        """`owner`: what sets the names given here apart from those given by others; '' for a policy."""
        self.params: dict[str, ir.Param] = {}
        self.lets: dict[str, ir.Let] = {}
        self.calls = 0
        """How many calls of functions were checked."""
        self._owner = owner
        self._reads: dict[str, frozenset[tuple[str, ...]]] = {}
        self._facts: dict[tuple[str, bool], Facts] = {}
        self._results: dict[Hashable, ir.Expr] = {}
        self._once: dict[Hashable, str] = {}
        for other in imported:
            self.take_over(other)

    def take_over(self, other: Definitions) -> None:
        """Everything another one defines is defined here too."""
        self.params |= other.params
        self.lets = {**other.lets, **self.lets}
        self._reads |= other._reads
        self._facts |= other._facts

    def define(self, let: ir.Let) -> None:
        """A let, after those it names."""
        self.lets[let.name] = let
        self._reads[let.name] = self.reads(let.value)
        for truth in (True, False) if let.value.type == BOOL else ():
            facts = established(let.value, truth, self)
            self._facts[let.name, truth] = facts if len(facts) <= MOST_FACTS else frozenset()

    def find(self, name: str) -> ir.Param | ir.Let | None:
        """A param or let; None if there is none."""
        return self.params.get(name) or self.lets.get(name)

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let; None if there is none."""
        let = self.lets.get(name)
        return let.value if let is not None else None

    def let_facts(self, name: str, truth: bool) -> Facts:
        """What is there wherever the let is `truth`."""
        return self._facts.get((name, truth), frozenset())

    def reads(self, expr: ir.Expr) -> frozenset[tuple[str, ...]]:
        """The paths an expression reads, through the lets it names too."""
        own, named = set(), set()
        for part in walk(expr):
            if isinstance(part, ir.Field):
                own.add(part.path)
            elif isinstance(part, ir.LetRef):
                named.add(part.name)
        return frozenset(own).union(*(self._reads.get(name, frozenset()) for name in named))

    # --- values without a name of their own -----------------------------------------------------------

    def once(self, value: ir.Expr, label: str) -> ir.LetRef:
        """A let that nobody wrote, so that a value used in several places is worked out once.

        Its name holds what no written name can, and it stands nowhere.
        """
        meaning = key(value)
        name = self._once.get(meaning)
        if name is None:
            name = self._once[meaning] = f"{self._owner}{label}#{len(self.lets)}"
            self.define(ir.Let(name=name, value=value, span=Span(0, 0)))
        return ir.LetRef(type=value.type, span=value.span, shape=value.shape, reach=value.reach, name=name)

    def result(self, call: Hashable) -> ir.Expr | None:
        """What an equal call came to; None for a new one."""
        return self._results.get(call)

    def remember(self, call: Hashable, result: ir.Expr) -> None:
        """Keeps what a call came to."""
        self._results[call] = result


def reached(lets: Iterable[ir.Let], expressions: Iterable[ir.Expr]) -> list[ir.Let]:
    """The lets that somebody wrote in the policy or on it, and those that these or the expressions name."""
    ordered = [let for let in lets if not is_error(let.value)]
    if all(map(_is_own, ordered)):
        return ordered
    wanted = set().union(*map(_named, expressions))
    kept: list[ir.Let] = []
    for let in reversed(ordered):
        if _is_own(let) or let.name in wanted:
            wanted |= _named(let.value)
            kept.append(let)
    return kept[::-1]


def _is_own(let: ir.Let) -> bool:
    """Whether somebody wrote it in the policy itself."""
    return "." not in let.name and bool(let.span.end)


def _named(expr: ir.Expr) -> set[str]:
    return {part.name for part in walk(expr) if isinstance(part, ir.LetRef)}
