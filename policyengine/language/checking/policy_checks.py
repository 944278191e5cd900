"""One policy on its way through the check, with the overlays on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import or_
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.bounds import Intervals
from policyengine.language.checking import plugin_checks, quota_checks, rule_checks, setting_checks, test_checks
from policyengine.language.checking.block_names import check_names
from policyengine.language.checking.context import Names
from policyengine.language.checking.definitions import Definitions, named, reached
from policyengine.language.checking.findings import Report
from policyengine.language.checking.libraries import (
    File,
    Imported,
    Libraries,
    any_failed,
    each_once,
    libraries_of,
    texts_of,
)
from policyengine.language.checking.policy_scope import PolicyScope, check_when
from policyengine.language.diagnostics import Source, has_errors
from policyengine.language.ir.ir_walk import expressions_in
from policyengine.language.rewrite import cost, rewrite
from policyengine.language.syntax import Span

_M = TypeVar("_M", bound=syntax.Member)
_R = TypeVar("_R")
Block = syntax.Policy | syntax.Overlay


class Part(Struct, frozen=True):
    """A block that makes up the policy, and what its members see: the policy itself, or an overlay on it."""

    file: File
    block: Block
    scope: PolicyScope
    imports: tuple[Imported, ...]


class PolicyCheck:
    """One policy, and the overlays on it in the order of their files."""

    def __init__(
        self,
        file: File,
        policy: syntax.Policy,
        overlays: Sequence[tuple[File, syntax.Overlay]],
        libraries: Libraries,
        plugins: plugin_checks.Plugins,
    ) -> None:
        self._file, self._policy, self._plugins, self._libraries = file, policy, plugins, libraries
        self._definitions = Definitions("", file.source.file)
        self._intervals = Intervals(self._definitions.params, self._definitions.lets)
        self._own = self._part(file, policy)
        self._parts = [self._own]
        self._parts += [self._part(other, block, self._own.scope.context.names) for other, block in overlays]

    def _part(self, file: File, block: Block, outer: Names | None = None) -> Part:
        elsewhere, report = file is not self._file, file.report.apart()
        span = self._policy.name.span if elsewhere else None
        imports = self._libraries.bring_in(self._definitions, self._libraries.imported(file), report, span)
        place = file.source.file if elsewhere else ""
        prefix = f"{block.name.text}." if outer is not None else ""
        libraries = libraries_of(imports)
        context = check_names(report, block, self._definitions, libraries, outer, prefix, place)
        scope = PolicyScope(file.source, context, self._intervals, file=place)
        if isinstance(block, syntax.Overlay):
            scope = replace(scope, when=check_when(scope, block.when, scope.inside(block.name.text)))
        return Part(file, block, scope, imports)

    def checked(self) -> ir.Policy | None:
        """The policy; None, with everything reported, where anything in it or in what it imports is wrong."""
        policy = self._assembled()
        checked = None if any(map(_is_incomplete, self._parts)) else rewrite(policy)
        if checked is not None and not check_cost(self._own.scope.report, checked, self._policy.name.span):
            checked = None
        for part in self._parts:
            part.file.report.diagnostics += part.scope.report.diagnostics
        return checked

    def _assembled(self) -> ir.Policy:
        """The policy, whatever was reported about it."""
        members, scope = self._policy.members, self._own.scope
        if not self._policy.name.text.strip():
            scope.report.error("PE2012", "a policy has a name", self._policy.name.span)
        self._rule_names()
        policy = ir.Policy(
            name=self._policy.name.text,
            scheduler=setting_checks.check_scheduler(scope.report, members),
            base=setting_checks.check_base(scope.report, members),
            share=setting_checks.check_share(scope, members),
            params=tuple(self._definitions.params.values()),
            lets=(),
            queue=setting_checks.check_queue(scope, members),
            uses=self._each(syntax.Use, partial(plugin_checks.check_use, plugins=self._plugins)),
            disabled=plugin_checks.check_disabled(scope.report, members, self._plugins),
            filters=self._each(syntax.Filter, rule_checks.check_filter),
            scores=self._scores(),
            gangs=self._each(syntax.Gang, rule_checks.check_gang),
            quotas=self._each(syntax.Quota, quota_checks.check_quota),
            permits=self._each(syntax.Permit, rule_checks.check_permit),
            preempt=rule_checks.check_preempt(scope, members),
            logs=self._each(syntax.OnLog, setting_checks.check_on),
            annotations=setting_checks.check_bind(scope, members),
            tests=self._each(syntax.Test, partial(test_checks.check_test, rules=self._refusing())),
            span=self._policy.span,
            source=self._file.source,
            texts=tuple(dict.fromkeys(self._texts())),
        )
        lets = reached(self._definitions.lets.values(), expressions_in(policy))
        return replace(policy, lets=tuple(map(self._definitions.placed, lets)))

    def _scores(self) -> tuple[ir.Score, ...]:
        scores = self._each(syntax.Score, rule_checks.check_score)
        for score in [score for score in scores if score.weight is None][setting_checks.MOST_TIERS :]:
            message = f"a policy has at most {setting_checks.MOST_TIERS} tiers, with those of its overlays"
            self._own.scope.report.error("PE2005", message, score.span)
        return scores

    def _each(self, kind: type[_M], check_one: Callable[[PolicyScope, _M], _R]) -> tuple[_R, ...]:
        return tuple(
            check_one(part.scope, member)
            for part in self._parts
            for member in part.block.members
            if isinstance(member, kind)
        )

    def _texts(self) -> Iterator[tuple[Source, Span]]:
        for part in self._parts:
            yield part.file.source, part.block.span
            yield from texts_of(part.imports, part.file)

    def _refusing(self) -> frozenset[str]:
        """What may refuse a pod: rules, and plugins."""
        named = [member for part in self._parts for member in part.block.members if isinstance(member, syntax.Rule)]
        broken = [name for part in self._parts for name in part.block.broken]
        return frozenset((*(rule.name.text for rule in named), *broken, *self._plugins))

    def _rule_names(self) -> None:
        """Of each kind of rule no two have one name in the whole policy, no rule has a plugin's, and each test has one
        of its own in its block."""
        rules: dict[type[syntax.Rule], dict[str, tuple[Report, syntax.NameText]]] = {}
        for part in self._parts:
            report, members = part.scope.report, part.block.members
            for kind in sorted({type(member) for member in members if isinstance(member, syntax.Rule)}, key=str):
                names = [member.name for member in members if type(member) is kind]
                each_once(report, kind.__name__.lower(), names, rules.setdefault(kind, {}), self._plugins)
            each_once(report, "test", [member.name for member in members if isinstance(member, syntax.Test)], {})


def _is_incomplete(part: Part) -> bool:
    """Whether something in it, or in what it imports, is wrong: a let that it needs may then be missing."""
    return has_errors(part.scope.report.diagnostics) or bool(part.block.broken) or any_failed(part.imports)


MOST_COST = 200_000
"""In the units of `rewrite.cost`: a column operation is ten. At 5,000 nodes that is about a tenth of a second."""


def check_cost(report: Report, policy: ir.Policy, span: Span) -> bool:
    """Whether the expressions of a policy cost little enough together; reported where they do not. A let counts once,
    and a step more in each member that needs it, through others too."""
    total = sum(map(cost, expressions_in(policy))) + _references(policy)
    if total > MOST_COST:
        message = f"one decision costs about {total:,} steps, and at most {MOST_COST:,} are allowed"
        report.error("PE2019", f"{message}; name what is repeated with `let`, and nest macros less deeply", span)
    return total <= MOST_COST


def _references(policy: ir.Policy) -> int:
    """How many lets the members of a policy need, each counted for itself."""
    below: dict[str, int] = {}
    """A let -> itself and those it needs, a bit each."""
    for place, let in enumerate(policy.lets):
        below[let.name] = reduce(or_, map(below.__getitem__, named(let.value)), 1 << place)
    members = (member for name in _DECIDING for member in getattr(policy, name))
    needed = (set().union(*map(named, expressions_in(member))) for member in (*members, policy.queue, policy.preempt))
    return sum(reduce(or_, map(below.__getitem__, names), 0).bit_count() for names in needed)


_DECIDING = ("filters", "scores", "gangs", "quotas", "permits", "logs", "annotations")
