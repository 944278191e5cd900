"""What lint's tests share: findings of a text, and expectations written beside its lines (`// ^ PE3001`)."""

from __future__ import annotations

import re
from functools import cache

from policyengine.compiler.assemble import plugin_facts
from policyengine.language.check import check_files
from policyengine.language.checking.plugin_checks import PluginFacts
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.parse import parse_file
from policyengine.plugins.registry import IN_TREE

BLOCK = re.compile(r"^(?:policy|import|library|overlay)\b", re.MULTILINE)
MARK = re.compile(r"\s*// \^ (PE\d{4})\s*$")


@cache
def plugins() -> dict[str, PluginFacts]:
    """What the checker is told of the plugins in the tree."""
    return plugin_facts(IN_TREE)


def checked_and_linted(text: str, settings: Settings | None = None) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The errors of a text, and the opinions about it."""
    source = Source("p.policy", text)
    file, broken = parse_file(source)
    policies, wrong = check_files([(file, source)], plugins())
    assert broken or wrong or len(policies) == len(file.policies)
    return [*broken, *wrong], lint(source, file, policies, plugins(), settings or Settings())


def opinions(text: str, settings: Settings | None = None) -> list[Diagnostic]:
    """The opinions about a text without errors."""
    wrong, found = checked_and_linted(text, settings)
    assert not wrong, [finding.message for finding in wrong]
    return found


def whole(text: str) -> str:
    """The text, in a policy where it is members only, without marks."""
    text = "\n".join(MARK.sub("", line) for line in text.split("\n"))
    return text if BLOCK.search(text) else f'policy "p" {{\n{text}\n}}'


def marks(text: str) -> list[tuple[int, str]]:
    """The (line, code) that a text expects, lines as in `whole`."""
    first = 1 if BLOCK.search(text) else 2
    lines = enumerate(text.split("\n"), first)
    return [(number, mark[1]) for number, line in lines if (mark := MARK.search(line))]


def places(found: list[Diagnostic], text: str) -> list[tuple[int, str]]:
    """The (line, code) of findings."""
    source = Source("p.policy", text)
    return [(source.line_column(finding.span.start)[0], finding.code) for finding in found]
