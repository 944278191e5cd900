"""The pages of all findings: what `lint --explain` prints, and docs/lint.md repeats."""

from __future__ import annotations

from importlib import import_module

from policyengine.language.diagnostics import CODES, Severity
from policyengine.language.lint.rules import RULES

_REPORTERS = (
    "policyengine.compiler.front",
    "policyengine.compiler.front",
    "policyengine.language.lint.linter",
)
"""Whoever reports a code registers its page when it is imported."""


def pages() -> dict[str, tuple[str, str]]:
    """Code -> title and page, by code."""
    for module in _REPORTERS:
        import_module(module)
    return dict(sorted(CODES.items()))


def severity_of(code: str) -> Severity:
    """The severity of a code where nothing else is settled. The comments' own findings are warnings."""
    default = Severity.WARNING if code.startswith("PE39") else Severity.ERROR
    return next((rule.severity for rule in RULES if rule.code == code), default)


def page_of(code: str) -> str | None:
    """The page of a code as text, None where there is no such code."""
    entry = pages().get(code)
    if entry is None:
        return None
    title, page = entry
    return f"{code}: {title} ({severity_of(code).value})\n\n{page}"
