"""For GitHub Actions: workflow commands, shown as annotations beside the lines of a change.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.commands.lint_files import Linted
from policyengine.language.diagnostics import Diagnostic, Severity, Source, printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def written(found: Sequence[Linted]) -> str:
    """A command a finding."""
    return "".join(f"{_command(finding, one.text.shown)}\n" for one in found for finding in one.findings)


def _command(finding: Diagnostic, source: Source) -> str:
    line, column = source.line_column(finding.span.start)
    end_line, end_column = source.line_column(finding.span.end)
    place: dict[str, object] = {"file": finding.file, "line": line, "endLine": end_line}
    if line == end_line:  # columns are only understood within one line
        place |= {"col": column, "endColumn": end_column}
    place["title"] = finding.code
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in place.items())
    fix = f" ({finding.fix.title})" if finding.fix else ""
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(printable(finding.message + fix))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
