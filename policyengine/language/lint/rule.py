"""What a rule is: a code, a severity, a page, and a function from a policy to findings. Rules take what they need from
here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import cleandoc
from typing import NamedTuple

from msgspec import Struct

from policyengine.language import syntax
from policyengine.language.diagnostics import Edit, Fix, Related, Severity
from policyengine.language.lint.linted_policy import Place, Subject
from policyengine.language.parsing.tokens import tokens_of
from policyengine.language.syntax import Span

__all__ = ["Edit", "Fix", "Place", "Related", "Severity", "Span", "Subject"]
__all__ += ["Finding", "Findings", "Rule", "instead", "only", "removal", "rule"]


class Finding(NamedTuple):
    """What a rule has found: a sentence, a place, and where it can a fix that keeps the policy's meaning."""

    message: str
    span: Span
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    steps: tuple[Related, ...] = ()
    """How it is known, of what has a proof."""


Findings = Iterator[Finding]
Check = Callable[[Subject], Findings]


class Rule(Struct, frozen=True):
    """One rule. `title` is the first line of its function's docstring, `page` the rest: Markdown."""

    code: str
    severity: Severity
    title: str
    page: str
    check: Check


def rule(code: str, severity: Severity) -> Callable[[Check], Rule]:
    """Makes a rule of the function it decorates, whose docstring is the rule's page.

    Arguments:
        code: `PE3xxx`, never given twice and never given up.
        severity: where no setting says otherwise.
    """

    def made(check: Check) -> Rule:
        title, _, page = cleandoc(check.__doc__ or code).partition("\n")  # `python -OO` leaves no docstring
        return Rule(code, severity, title, page.strip(), check)

    return made


def instead(text: str, *edits: Edit) -> Fix:
    """A safe fix that writes a text."""
    return Fix(f"write `{text}`", edits, safe=True)


def only(whole: Span, part: Span, before: str = "", behind: str = "") -> tuple[Edit, Edit]:
    """Edits that leave only a part of a place, between other texts."""
    return Edit(Span(whole.start, part.start), before), Edit(Span(part.end, whole.end), behind)


def removal(subject: Subject, member: syntax.Member, title: str) -> Fix:
    """A safe fix that takes a member out, with its `///` comment."""
    docs = tokens_of(subject.source).docs(subject.source, member.span.start)
    spans = (*(one.span for one in docs), member.span)
    return Fix(title, tuple(Edit(span, "") for span in spans), safe=True)
