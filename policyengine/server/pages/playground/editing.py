"""What an editor is told while one types, by the language server's own functions, as LSP says it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp
from lsprotocol.converters import get_converter

from policyengine.language.diagnostics import Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.policy_text import PolicyText
from policyengine.server.language_server.code_actions import code_actions
from policyengine.server.language_server.code_completion import completion
from policyengine.server.language_server.documents import Lines, Toolchain
from policyengine.server.language_server.hover import hover
from policyengine.server.language_server.project import Project, Reading
from policyengine.server.pages.playground.evaluation import FILE, libraries

Json = dict[str, Any]
URI: Final = f"file:///{FILE}"
SHOWN: Final = 200
"""Findings an editor is told of, words it is offered."""
_CONVERTER = get_converter()


def toolchain(given: Toolchain) -> Toolchain:
    """The toolchain for a text that lies in no folder: nobody has settled anything there."""
    return Toolchain(given.plugins, lambda path, text: [_whole(path, text)], lambda folder: Settings(), given.pages)


def _whole(path: str, text: str) -> PolicyText:
    source = Source(path, text)
    return PolicyText(source, source)


def findings(given: Toolchain, text: str) -> list[Json]:
    """Diagnostics of LSP, each with `actions`: `{title, edits}`."""
    project, reading = _opened(given, text)
    found = []
    for one in project.findings_in(reading)[:SHOWN]:
        actions = code_actions(reading, [one], one.span, [lsp.CodeActionKind.QuickFix])
        changes = [(action.title, action.edit.changes if action.edit is not None else None) for action in actions]
        said = [{"title": title, "edits": _plain(edits[URI] if edits else [])} for title, edits in changes]
        found.append(_plain(reading.document.published(one)) | {"actions": said})
    return found


def completions(given: Toolchain, text: str, place: Json) -> list[Json]:
    """What may be written at a place, a position of LSP: completion items."""
    project, reading = _opened(given, text)
    return [_plain(one) for one in completion(project, reading, _offset(reading, place))[:SHOWN]]


def hovered(given: Toolchain, text: str, place: Json) -> Json | None:
    """What to show at a place: a hover of LSP, its text Markdown."""
    project, reading = _opened(given, text)
    found = hover(reading, _offset(reading, place), project.findings_in(reading))
    return None if found is None else _plain(found)


def _opened(given: Toolchain, text: str) -> tuple[Project, Reading]:
    project = _Alone(given)
    return project, next(project.readings(project.open(URI, text, 0)))


def _offset(reading: Reading, place: Json) -> int:
    return reading.document.lines.offset(lsp.Position(int(place["line"]), int(place["character"])))


class _Alone(Project):
    """A text that lies in no folder: beside it are the libraries that come along."""

    def in_folder(self, folder: Path) -> Iterator[tuple[str, Lines, Source]]:
        """The libraries."""
        for source in libraries():
            yield f"file:///{Path(source.file).name}", Lines(source.text), source


def _plain(found: Any) -> Any:
    return _CONVERTER.unstructure(found)
