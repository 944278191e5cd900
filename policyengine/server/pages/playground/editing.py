"""What an editor is told while one types, by the language server's own functions, as LSP says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


class Editor:
    """One text, as an editor holds it."""

    def __init__(self, given: Toolchain, text: str) -> None:
        self._project = _Alone(given)
        self._document = self._project.open(URI, text, 0)

    @property
    def _reading(self) -> Reading:
        return next(self._project.readings(self._document))

    def findings(self) -> list[Json]:
        """Diagnostics of LSP, each with `actions`: `{title, edits}`."""
        reading = self._reading
        found = self._project.findings_in(reading)[:SHOWN]
        return [
            _plain(self._document.published(one))
            | {"actions": list(self._actions(code_actions(reading, [one], one.span, [lsp.CodeActionKind.QuickFix])))}
            for one in found
        ]

    def _actions(self, actions: Sequence[lsp.CodeAction]) -> Iterator[Json]:
        for one in actions:
            changes = one.edit.changes if one.edit is not None else None
            yield {"title": one.title, "edits": _plain(changes[URI] if changes else [])}

    def completions(self, offset: int) -> list[Json]:
        """What may be written at a place: completion items of LSP."""
        return [_plain(one) for one in completion(self._project, self._reading, offset)[:SHOWN]]

    def hovered(self, offset: int) -> Json | None:
        """What to show at a place: a hover of LSP, its text Markdown."""
        reading = self._reading
        found = hover(reading, offset, self._project.findings_in(reading))
        return None if found is None else _plain(found)

    def offset(self, place: Json) -> int:
        """The offset of a position of LSP."""
        return self._document.lines.offset(lsp.Position(int(place["line"]), int(place["character"])))


class _Alone(Project):
    """A text that lies in no folder: beside it are the libraries that come along."""

    def in_folder(self, folder: Path) -> Iterator[tuple[str, Lines, Source]]:
        """The libraries."""
        for source in libraries():
            yield f"file:///{Path(source.file).name}", Lines(source.text), source


def _plain(found: Any) -> Any:
    return _CONVERTER.unstructure(found)
