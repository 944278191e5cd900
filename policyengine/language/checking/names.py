"""The names of a policy: params and lets, in the order in which they need each other.

Lets may be written in any order. They are checked after those they name, so that no check has to go from let to
let by recursion, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.codes import LET_CYCLE, REDEFINED
from policyengine.language.checking.context import MOST_FACTS, Context, Fact, Report, error_at, is_error
from policyengine.language.checking.expression import ExpressionChecker
from policyengine.language.checking.guards import established
from policyengine.language.checking.params import check_param
from policyengine.language.diagnostics import Related
from policyengine.language.ir_walk import walk
from policyengine.language.schema import ROOTS
from policyengine.language.syntax_walk import names_in
from policyengine.language.types import BOOL


class PolicyNames:
    """Params and lets of one policy; implements `context.Names`."""

    def __init__(self, report: Report, members: Sequence[syntax.Member], broken: Iterable[str] = ()) -> None:
        """`broken`: names that members which did not parse would have defined; their use is no finding."""
        self._report = report
        self._params: dict[str, ir.Param | None] = {}
        self._lets: dict[str, ir.Let] = {}
        self._reads: dict[str, frozenset[tuple[str, ...]]] = {}
        self._facts: dict[tuple[str, bool], frozenset[Fact]] = {}
        named = [member for member in members if isinstance(member, syntax.Param | syntax.Let)]
        self._visible = self._claimed(named)
        self._all = frozenset((*self._visible, *broken))
        self._checker = ExpressionChecker(report, self)
        for member in named:
            if isinstance(member, syntax.Param) and self._visible.get(member.name.text) is member:
                self._params[member.name.text] = check_param(self._checker, member)
        self._check_lets({name: m for name, m in self._visible.items() if isinstance(m, syntax.Let)})

    def _claimed(self, named: Iterable[syntax.Param | syntax.Let]) -> dict[str, syntax.Param | syntax.Let]:
        """Each name with the first member that takes it; the others are reported."""
        claimed: dict[str, syntax.Param | syntax.Let] = {}
        for member in named:
            name = member.name
            if name.text in ROOTS:
                self._report.error(REDEFINED, f"`{name.text}` is taken: it is a name of the schema", name.span)
            elif name.text in claimed:
                first = Related(claimed[name.text].name.span, "defined here first")
                self._report.error(REDEFINED, f"`{name.text}` is defined twice", name.span, related=(first,))
            else:
                claimed[name.text] = member
        return claimed

    def _check_lets(self, members: Mapping[str, syntax.Let]) -> None:
        for name, in_cycle in in_order({name: names_in(member.value) for name, member in members.items()}):
            member = members[name]
            if in_cycle:
                shown = in_cycle if len(in_cycle) <= 8 else (*in_cycle[:6], "…", name)
                message = f"`{name}` needs its own value: {' -> '.join(f'`{other}`' for other in shown)}"
                self._report.error(LET_CYCLE, message, member.name.span)
                value: ir.Expr = error_at(member.value.span)
            else:
                value = self._checker.check(member.value, Context(rule=name))
            self._lets[name] = ir.Let(name=name, value=value, span=member.span)
            self._reads[name] = self.reads(value)
            for truth in (True, False) if value.type == BOOL else ():
                facts = established(value, truth, self)
                self._facts[name, truth] = facts if len(facts) <= MOST_FACTS else frozenset()

    # --- check_context.Names --------------------------------------------------------------------------

    def let(self, name: str) -> ir.Let | None:
        """A let by name; None if there is none."""
        return self._lets.get(name)

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let by name; None if there is none."""
        let = self._lets.get(name)
        return let.value if let is not None else None

    def let_facts(self, name: str, truth: bool) -> frozenset[Fact]:
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

    def param(self, name: str) -> ir.Param | None:
        """A param by name; None if there is none, or it was reported."""
        return self._params.get(name)

    def was_reported(self, name: str) -> bool:
        """Whether the name is a param that has no meaning because it was reported."""
        return name in self._all and self._params.get(name) is None

    def visible(self) -> frozenset[str]:
        """The names of all lets and params."""
        return self._all

    # --- results --------------------------------------------------------------------------------------

    def lets(self) -> tuple[ir.Let, ...]:
        """The lets without errors, each after those it names."""
        return tuple(let for let in self._lets.values() if not is_error(let.value))

    def params(self) -> tuple[ir.Param, ...]:
        """The params without errors, in file order."""
        return tuple(param for param in self._params.values() if param is not None)


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
