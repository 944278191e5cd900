"""A text with the cursor at `¦`, opened in a project that knows no client."""

from __future__ import annotations

from pathlib import Path

from lsprotocol.types import CompletionItem, Range, WorkspaceEdit

from policyengine.commands.lsp import toolchain
from policyengine.language.diagnostics import Diagnostic
from policyengine.language.syntax import Span
from policyengine.server.language_server.code_completion import completion
from policyengine.server.language_server.documents import Lines
from policyengine.server.language_server.project import Project, Reading

TRAINING = Path(__file__).parent.parent.parent.parent / "policies/training.policy"


def opened(text: str, path: Path | None = None, project: Project | None = None) -> tuple[Project, Reading, int]:
    """A project with the text in it, what is known of it, and the cursor's offset (0 without one)."""
    project = project or Project(toolchain())
    offset = max(text.find("¦"), 0)
    uri = path.as_uri() if path is not None else "untitled:a.policy"
    document = project.open(uri, text.replace("¦", ""), 1)
    found = document.text_at(offset)
    assert found is not None
    return project, project.reading(document, found[0]), found[1]


def span_of(lines: Lines, range_: Range) -> Span:
    """The span of a range."""
    return Span(lines.offset(range_.start), lines.offset(range_.end))


def training(before: str, after: str) -> str:
    """The policy of the documentation with a change in one place, the cursor in what is put there."""
    text = TRAINING.read_text(encoding="utf-8")
    assert text.count(before) >= 1
    return text.replace(before, after, 1)


def completed(text: str) -> dict[str, CompletionItem]:
    """What may be written at the cursor, by label."""
    project, reading, offset = opened(text)
    return {item.label: item for item in completion(project, reading, offset)}


def member(text: str) -> str:
    """A policy with one member."""
    return f'policy "p" {{\n  {text}\n}}\n'


def findings(text: str) -> list[Diagnostic]:
    """Everything found in a text."""
    project, reading, _ = opened(text)
    return project.findings_in(reading)


def after(reading: Reading, edit: WorkspaceEdit) -> dict[str, str]:
    """The texts of the files an edit changes, by file name, as they are then."""
    changed: dict[str, str] = {}
    for name, (uri, lines, (source, _, _)) in reading.around.items():
        edits = (edit.changes or {}).get(uri, [])
        text = source.text
        for one in sorted(edits, key=lambda one: lines.offset(one.range.start), reverse=True):
            span = span_of(lines, one.range)
            text = text[: span.start] + one.new_text + text[span.end :]
        if edits:
            changed[Path(name).name] = text
    return changed
