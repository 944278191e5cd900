"""The names of a block: its params, lets and functions, and those of the libraries it imports.

Lets and functions may be written in any order. They are checked after those they name, so that no check has to go
from let to let by recursion, however many there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.context import Context, Declared, Named, Names
from policyengine.language.checking.definitions import Definitions
from policyengine.language.checking.expression import check_expression
from policyengine.language.checking.findings import Report, error_at
from policyengine.language.checking.function_calls import declared
from policyengine.language.checking.macros import FOLDS
from policyengine.language.checking.param_checks import check_param
from policyengine.language.diagnostics import Related
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.schema import ROOTS
from policyengine.language.syntax.expression_nodes import names_in, walk

_K = TypeVar("_K", bound=Hashable)
_SPECIAL = frozenset({"has", "toQuantity", "optMap", "optFlatMap", *FOLDS})
_BUILT_IN = _SPECIAL | {row.name for row in FUNCTIONS.values() if row.style is not Style.OPERATOR}


def check_names(
    report: Report,
    block: syntax.Policy | syntax.Overlay | syntax.Library,
    definitions: Definitions,
    libraries: Mapping[str, Names | None],
    outer: Names | None = None,
    prefix: str = "",
    file: str = "",
) -> Context:
    """Checks the params, lets and functions of a block; where its other members stand.

    Arguments:
        block: members of it that did not parse would have defined its `broken` names; their use is no finding.
        definitions: takes up what the block defines.
        libraries, outer, prefix: as in `Names`.
        file: where an overlay or library stands, '' for the policy's own file.
    """
    named = [member for member in block.members if isinstance(member, Named)]
    own = _claimed(report, named, libraries, outer)
    around = outer.visible if outer is not None else frozenset()
    visible = frozenset((*(member.name.text for member in named), *block.broken, *libraries)) | around
    names = Names(definitions, own, visible, libraries, outer, prefix)
    context = Context(report, names, definitions, check_expression)
    for name, member in own.items():
        if isinstance(member, syntax.Param):
            param = check_param(context, member, prefix + name, file)
            if param is not None:
                definitions.params[param.name] = param
    others = {name: member for name, member in own.items() if not isinstance(member, syntax.Param)}
    for name, in_cycle in in_order({name: _needs(member) for name, member in others.items()}):
        _check_in_turn(context, others[name], in_cycle, file)
    return context


def _claimed(
    report: Report, named: Iterable[Named], libraries: Mapping[str, Names | None], outer: Names | None
) -> dict[str, Named]:
    """Each name with the first member that takes it; the others are reported."""
    claimed: dict[str, Named] = {}
    for member in named:
        name = member.name
        meaning = ""
        if name.text in ROOTS:
            meaning = "a name of the schema"
        elif isinstance(member, syntax.Function) and name.text in _BUILT_IN:
            meaning = "a function of the language"
        elif name.text in libraries:
            meaning = "an imported library"
        elif outer is not None and name.text in outer.visible:
            meaning = "a name of the policy"
        if meaning:
            report.error("PE1009", f"`{name.text}` is taken: it is {meaning}", name.span)
        elif name.text in claimed:
            first = Related(claimed[name.text].name.span, "defined here first")
            report.error("PE1009", f"`{name.text}` is defined twice", name.span, related=(first,))
        else:
            claimed[name.text] = member
    return claimed


def _check_in_turn(context: Context, member: syntax.Let | syntax.Function, cycle: tuple[str, ...], file: str) -> None:
    """Checks a let or function after those it needs; in a cycle it is reported instead."""
    name, names = member.name.text, context.names
    full = names.prefix + name
    if isinstance(member, syntax.Function):
        if cycle:
            message = f"`{name}` calls itself: {_shown(cycle)}; functions do not recurse"
            context.report.error("PE1014", message, member.name.span)
            names.functions[name] = Declared(full, member, (), None, names)
        else:
            names.functions[name] = declared(context, member, full)
        return
    if cycle:
        context.report.error("PE1014", f"`{name}` needs its own value: {_shown(cycle)}", member.name.span)
        value: ir.Expr = error_at(member.value.span)
    else:
        value = replace(context, rule=full).check(member.value)
    context.definitions.define(ir.Let(name=full, value=value, span=member.span, file=file))


def _needs(member: syntax.Let | syntax.Function) -> frozenset[str]:
    """The words a let's value or a function's body uses."""
    body = member.body if isinstance(member, syntax.Function) else member.value
    called = {part.function for part in walk(body) if isinstance(part, syntax.Call) and part.target is None}
    return names_in(body) | called


def _shown(cycle: tuple[str, ...]) -> str:
    shown = cycle if len(cycle) <= 8 else (*cycle[:6], "…", cycle[-1])
    return " -> ".join(f"`{name}`" for name in shown)


def in_order(needs: Mapping[_K, frozenset[_K]]) -> Iterator[tuple[_K, tuple[_K, ...]]]:
    """Every name after those it needs; one in a cycle comes with the cycle (`a b a`), once a cycle.

    The rest of a cycle follows without one: only the first of it is reported.
    """
    done: set[_K] = set()
    for root in needs:
        path: dict[_K, Iterator[_K]] = {}
        current: _K | None = root if root not in done else None
        cyclic: dict[_K, tuple[_K, ...]] = {}
        while current is not None or path:
            if current is not None:
                path[current] = iter(sorted(needs[current] & needs.keys(), key=str))
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
