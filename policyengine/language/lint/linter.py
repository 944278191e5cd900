"""All rules over a checked file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Diagnostic, Source, in_order, printable, register
from policyengine.language.edits import keeping_comments
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.rule import Subject, words_named
from policyengine.language.lint.rules import RULES
from policyengine.language.lint.suppressions import MALFORMED, UNUSED, allowed

register({rule.code: (rule.title, rule.page) for rule in RULES})
LINT_CODES = frozenset({rule.code for rule in RULES} | {MALFORMED, UNUSED})
"""The codes whose severity a project may settle."""
MOST_FINDINGS = 200
"""Of one policy that are told; a text that earns more is not read to the end."""


def lint(
    source: Source,
    file: syntax.File,
    policies: Sequence[ir.Policy],
    plugins: Plugins,
    settings: Settings,
    overlays: Mapping[str, Sequence[str]] = MappingProxyType({}),
    most: int | None = MOST_FINDINGS,
) -> list[Diagnostic]:
    """The opinions about a file, in order of place.

    Arguments:
        file: what `parse_file` made of the source.
        policies: what `check` made of the file: a policy with an error is not among them, and gets no opinions.
        plugins: every plugin a policy may name.
        overlays: policy -> the texts of overlays on it that are not loaded with it, and may name what it has.
        most: the opinions of one policy, those that come first in it; None: all.
    """
    written = {policy.span: policy for policy in file.policies}
    found: list[Diagnostic] = []
    named = words_named(file) if file.imports else frozenset[str]()
    for policy in policies:
        if policy.span in written:
            subject = Subject(
                source, written[policy.span], policy, plugins, settings, file, named, overlays.get(policy.name, ())
            )
            found += in_order(_opinions(subject))[:most]
    complete = len(policies) == len(file.policies) and not any(policy.broken for policy in file.policies)
    ignored = settings.ignored if complete else LINT_CODES
    return in_order(
        replace(one, severity=severity, fix=keeping_comments(source, one.fix))
        for one in allowed(source, file, found, ignored)
        if (severity := settings.severity(one.code, one.severity)) is not None
    )


def _opinions(subject: Subject) -> list[Diagnostic]:
    imports = {statement.span for statement in subject.file.imports}
    return [
        Diagnostic(rule.code, rule.severity, printable(one.message), subject.source.file, *one[1:])
        for rule in RULES
        if rule.code not in subject.settings.ignored
        for one in rule.check(subject)
        if subject.holds(one.span) or one.span in imports
    ]
