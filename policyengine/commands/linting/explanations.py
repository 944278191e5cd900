"""`lint --explain CODE FILE[:LINE]`: each finding of a code, with the smallest clusters that
show it; and the pages of all findings, which `lint --explain` prints and docs/lint.md repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from policyengine.commands.installed_plugins import installed_registry
from policyengine.commands.linting.files import Linted, linted
from policyengine.commands.options import UnusableInput
from policyengine.commands.policy_files import texts_and_errors
from policyengine.language.diagnostics import CODES, Severity, printable, render
from policyengine.language.lint.rules import RULES
from policyengine.trials.finding_claims import CLAIMS
from policyengine.trials.finding_search import examples
from policyengine.trials.policy_test import TestedPolicy

_REPORTERS = ("policyengine.compiler.front", "policyengine.language.lint.linter")
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


_LINE = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
_KNOWN = "How it is known:"
_TEXT_ONLY = "No cluster is shown for this code: it is about what is written more than about what is decided."
_NOT_FOUND = "None of the clusters that were tried shows this."
_NEVER = "No cluster contradicts this. What comes nearest, as tests that pass:"
_SOMETIMES = "The smallest cluster that shows this, as a test that passes:"


def explained(code: str, paths: Sequence[str], params: Mapping[str, object]) -> Iterator[str]:
    """The findings of a code in files, each with its examples.

    Arguments:
        paths: as `lint` takes them; of `FILE:LINE` only the findings of that line.

    Raises:
        UnusableInput: a path cannot be used, or there is no such finding.
    """
    lines = {path: found for path in paths if not Path(path).exists() and (found := _LINE.fullmatch(path))}
    texts, errors = texts_and_errors([lines[path][1] if path in lines else path for path in paths])
    if errors:
        raise UnusableInput("; ".join(map(str, errors)))
    only = {(found[1], int(found[2])) for found in lines.values()}
    whole = {str(Path(path)) for path in paths if path not in lines}
    none = True
    for one in linted(texts, params):
        for at, finding in enumerate(one.findings):
            shown = one.text.shown
            place = (shown.file, shown.line_column(finding.span.start)[0])
            above = {str(one) for one in (Path(shown.file), *Path(shown.file).parents)}
            if finding.code == code and (place in only or not only or not whole.isdisjoint(above)):
                none = False
                yield render([finding], shown)
                if finding.steps:
                    yield _steps(one, at)
                yield _examples(one, at)
    if none:
        raise UnusableInput(f"there is no finding {code} in {', '.join(f'`{printable(path)}`' for path in paths)}")


def _steps(one: Linted, at: int) -> str:
    """How a finding is known, step by step: each with its line."""
    places = zip(one.findings[at].steps, one.in_text[at].steps, strict=True)
    lines = [
        f"  line {one.text.shown.line_column(shown.span.start)[0]}: "
        f"`{printable(' '.join(one.text.source.slice(step.span).split()))}` {printable(step.label)}"
        for shown, step in places
    ]
    return "\n".join([_KNOWN, *lines]) + "\n"


def _examples(one: Linted, at: int) -> str:
    """The examples of a finding, in a sentence or as tests."""
    finding = one.in_text[at]
    first, last = finding.span.start, finding.span.end
    policy = next((policy for policy in one.policies if policy.span.start <= first <= last <= policy.span.end), None)
    if finding.code not in CLAIMS or policy is None:
        return f"{_TEXT_ONLY}\n"
    never, found = examples(TestedPolicy(policy, registry=installed_registry()), finding)
    if not found:
        return f"{_NOT_FOUND}\n"
    return "\n\n".join([_NEVER if never else _SOMETIMES, *(one.text for one in found)]) + "\n"
