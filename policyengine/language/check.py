"""The check phase: a parsed file in, checked policies and every finding out.

Each member is checked whatever is wrong with the others. A policy comes out only if nothing in it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from policyengine.language import ir, syntax
from policyengine.language.checking.codes import (
    DUPLICATE_NAME,
    MEMBER_NOT_AVAILABLE,
    SAME_SCHEDULER,
    TOO_MANY,
    WRONG_WORD,
)
from policyengine.language.checking.context import Report
from policyengine.language.checking.expression import ExpressionChecker
from policyengine.language.checking.intervals import Intervals
from policyengine.language.checking.names import PolicyNames
from policyengine.language.checking.plugins import (
    PluginFacts,
    Plugins,
    check_use,
    contradictions,
    unknown_plugin,
)
from policyengine.language.checking.rules import PolicyScope, check_filter, check_gang, check_score
from policyengine.language.checking.settings import check_base, check_queue, check_scheduler, check_share
from policyengine.language.checking.tests import check_test
from policyengine.language.diagnostics import Diagnostic, Related, Source, has_errors, in_order
from policyengine.language.parsing.tokens import MAX_FINDINGS
from policyengine.language.rewrite import rewrite

__all__ = ["PluginFacts", "check"]

_M = TypeVar("_M", bound=syntax.Member)
_R = TypeVar("_R")
_NOT_AVAILABLE: dict[type[syntax.Member], str] = {
    syntax.Function: "function",
    syntax.Quota: "quota",
    syntax.Permit: "permit",
    syntax.Preempt: "preempt",
    syntax.OnLog: "on",
    syntax.BindAnnotations: "bind",
    syntax.Import: "import",
    syntax.Library: "library",
    syntax.Overlay: "overlay",
}


def check(file: syntax.File, source: Source, plugins: Plugins) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """Checks a file.

    Arguments:
        file: what `parse_file` made of the source; its findings are not repeated here.
        plugins: every plugin a policy may name.

    Returns:
        The policies without errors, and the findings in the order of the text.
    """
    report = Report(source.file)
    for member in (*file.imports, *file.libraries, *file.overlays):
        _not_available(report, member)
    policies = [_check_policy(policy, source, plugins, report) for policy in file.policies]
    _one_a_scheduler(report, file.policies)
    found = in_order(report.diagnostics)
    if len(found) > MAX_FINDINGS:
        last = found[MAX_FINDINGS].span
        report.error(TOO_MANY, f"more than {MAX_FINDINGS} mistakes: the rest is not shown", last)
        found = [*found[:MAX_FINDINGS], report.diagnostics[-1]]
    return [policy for policy in policies if policy is not None], found


def _check_policy(policy: syntax.Policy, source: Source, plugins: Plugins, report: Report) -> ir.Policy | None:
    own = Report(source.file)
    checked = _Policy(policy, plugins, own).checked()
    report.diagnostics += own.diagnostics
    return None if policy.broken or has_errors(own.diagnostics) else rewrite(checked)


class _Policy:
    """One policy on its way through the check."""

    def __init__(self, policy: syntax.Policy, plugins: Plugins, report: Report) -> None:
        self._policy = policy
        self._plugins = plugins
        self._report = report
        names = PolicyNames(report, policy.members, policy.broken)
        intervals = Intervals(names.params(), names.lets())
        self._scope = PolicyScope(report, names, ExpressionChecker(report, names), intervals)

    def checked(self) -> ir.Policy:
        """The policy; what was reported is left out of it."""
        members, scope = self._policy.members, self._scope
        if not self._policy.name.text.strip():
            self._report.error(WRONG_WORD, "a policy has a name", self._policy.name.span)
        for member in members:
            if type(member) in _NOT_AVAILABLE:
                _not_available(self._report, member)
        self._rule_names()
        disabled = self._disabled()
        policy = ir.Policy(
            name=self._policy.name.text,
            scheduler=check_scheduler(self._report, members),
            base=check_base(self._report, members),
            share=check_share(scope, members),
            params=scope.names.params(),
            lets=scope.names.lets(),
            queue=check_queue(scope, members),
            uses=self._each(syntax.Use, lambda member: check_use(scope, member, self._plugins)),
            disabled=disabled,
            filters=self._each(syntax.Filter, lambda member: check_filter(scope, member)),
            scores=self._each(syntax.Score, lambda member: check_score(scope, member)),
            gangs=self._each(syntax.Gang, lambda member: check_gang(scope, member)),
            span=self._policy.span,
        )
        names = (name.text for member in members if (name := _name_of_rule(member)) is not None)
        rules = {*names, *self._policy.broken, *self._plugins}
        tests = self._each(syntax.Test, lambda member: check_test(scope, member, rules))
        return replace(policy, tests=tests)

    def _each(self, kind: type[_M], check_one: Callable[[_M], _R | None]) -> tuple[_R, ...]:
        found = (check_one(member) for member in self._policy.members if isinstance(member, kind))
        return tuple(one for one in found if one is not None)

    def _disabled(self) -> tuple[str, ...]:
        members = [member for member in self._policy.members if isinstance(member, syntax.Disable)]
        uses = [member for member in self._policy.members if isinstance(member, syntax.Use)]
        contradictions(self._report, uses, members)
        for member in members:
            if member.plugin.text not in self._plugins:
                unknown_plugin(self._report, member.plugin, self._plugins)
        return tuple(member.plugin.text for member in members)

    def _rule_names(self) -> None:
        """Each rule and each test has a name of its own, and no rule a plugin's."""
        rules = [name for member in self._policy.members if (name := _name_of_rule(member)) is not None]
        tests = [member.name for member in self._policy.members if isinstance(member, syntax.Test)]
        self._each_once("rule", rules)
        self._each_once("test", tests)

    def _each_once(self, what: str, names: Iterable[syntax.NameText]) -> None:
        first: dict[str, syntax.NameText] = {}
        for name in names:
            self._rule_name(what, name, first.get(name.text))
            first.setdefault(name.text, name)

    def _rule_name(self, what: str, name: syntax.NameText, first: syntax.NameText | None) -> None:
        if not name.text.strip():
            self._report.error(WRONG_WORD, f"a {what} has a name", name.span)
        elif first is not None:
            related = (Related(first.span, "taken here"),)
            self._report.error(DUPLICATE_NAME, f"another {what} is called `{name.text}`", name.span, related=related)
        elif what == "rule" and name.text in self._plugins:
            self._report.error(DUPLICATE_NAME, f"`{name.text}` is the name of a plugin", name.span)


def _name_of_rule(member: syntax.Member) -> syntax.NameText | None:
    """The name under which a rule refuses or scores, None for what is no rule."""
    match member:
        case syntax.Filter() | syntax.Score() | syntax.Gang() | syntax.Quota() | syntax.Permit():
            return member.name
        case _:
            return None


def _not_available(report: Report, member: syntax.Member) -> None:
    keyword = _NOT_AVAILABLE[type(member)]
    span = member.keyword_span if member.keyword_span.end else member.span
    report.error(MEMBER_NOT_AVAILABLE, f"`{keyword}` is not available in this version", span)


def _one_a_scheduler(report: Report, policies: Iterable[syntax.Policy]) -> None:
    first: dict[str, syntax.Policy] = {}
    for policy in policies:
        name = check_scheduler(Report(report.file), policy.members)
        if name in first:
            related = Related(first[name].name.span, "served by this one")
            message = f"two policies serve the scheduler name `{name}`"
            report.error(SAME_SCHEDULER, message, policy.name.span, related=(related,))
        first.setdefault(name, policy)
