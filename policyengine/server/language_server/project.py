"""The open documents, the files beside them, and what the toolchain says of each text. No sockets, no clock.

A policy file is checked as `policyengine lint FILE` checks it: alone, or with the files of its folder where it imports
or overlays something; the texts of a ConfigMap are checked together. Names are looked up in the whole folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cachetools import LRUCache
from lsprotocol.types import Location, Range, TextEdit
from pygls.uris import from_fs_path, to_fs_path

from policyengine.compiler.front import Checked, Parsed, checked_trees
from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic, Edit, Severity, Source, in_order
from policyengine.language.lint.lint_settings import Settings, SettingsError
from policyengine.language.lint.linter import lint
from policyengine.language.parse import SourceError, parse_file, read_source
from policyengine.language.parsing.tokens import Tokens, tokenise
from policyengine.language.policy_text import PolicyText
from policyengine.language.syntax import Span
from policyengine.server.language_server.cursor import member_at
from policyengine.server.language_server.documents import Document, Lines, Toolchain
from policyengine.server.language_server.scopes import Occurrence, Scope, Scopes

MOST_BESIDE = 200
"""Files of a folder in which names are looked up."""
MOST_FOLDERS = 2000
"""Folders of a workspace in which policies are looked for."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
_REMEMBERED = 256
"""Texts whose trees are kept, and texts whose findings are."""


@dataclass(frozen=True)
class Reading:
    """A policy text and everything that is known of it. `group`: the texts it is checked with, itself first."""

    document: Document
    text: PolicyText
    group: tuple[Parsed, ...]
    around: Mapping[str, tuple[str, Lines, Parsed]]
    """The texts in which its names are looked up, itself among them: name -> address, lines of the file, tree."""
    toolchain: Toolchain

    @property
    def source(self) -> Source:
        """The text."""
        return self.text.source

    @property
    def tree(self) -> syntax.File:
        """Its syntax tree, without what is broken."""
        return self.group[0][1]

    @cached_property
    def cut(self) -> Tokens:
        """Its tokens and comments."""
        return tokenise(self.source.text, self.source.file)

    @cached_property
    def checked(self) -> Checked:
        """What the checker says of the group."""
        return checked_trees(self.group, self.toolchain.plugins)

    @cached_property
    def scopes(self) -> Scopes:
        """Who names what."""
        return Scopes([(file, tree) for file, (_, _, (_, tree, _)) in self.around.items()])

    def named(self, offset: int) -> Occurrence | None:
        """The name at an offset."""
        return self.scopes.at(self.source.file, offset)

    def scopes_at(self, offset: int) -> list[Scope]:
        """The scopes whose names can be used in the block at an offset, the innermost first."""
        block, _ = member_at(self.tree, offset)
        return self.scopes.scope(self.source.file, block).chain() if block is not None else []

    def range(self, span: Span) -> Range:
        """A place of the text, as the editor names it."""
        return self.document.lines.range(self.text.shown_span(span) if self.text.starts else span)

    def location(self, file: str, span: Span) -> Location:
        """A place of one of the texts around."""
        if file == self.source.file:
            return Location(self.document.uri, self.range(span))
        if self.text.starts:
            text = next(one for one in self.document.texts if one.source.file == file)
            return Location(self.document.uri, self.document.lines.range(text.shown_span(span)))
        uri, lines, _ = self.around[file]
        return Location(uri, lines.range(span))

    def findings(self, settings: Settings) -> list[Diagnostic]:
        """Everything that is wrong with the text, or questionable, in order of its places in the text."""
        file, checked = self.source.file, self.checked
        wrong = [finding for finding in checked.findings if finding.file == file]
        policies = [policy for policy in checked.policies if policy.source.file == file]
        return in_order([*wrong, *lint(self.source, self.tree, policies, self.toolchain.plugins, settings)])

    def edits(self, edits: Sequence[Edit]) -> list[TextEdit]:
        """Edits of the text, as edits of the file; a new line is indented as the ConfigMap's text is."""
        indent = ""
        if self.text.starts:
            start = self.text.starts[0]
            line, column = self.text.shown.line_column(start)
            indent = self.text.shown.line(line)[: column - 1]
        return [TextEdit(self.range(edit.span), edit.text.replace("\n", "\n" + indent)) for edit in edits]


class Project:
    """What is open, and what lies beside it."""

    def __init__(self, toolchain: Toolchain) -> None:
        self.toolchain = toolchain
        self._open: dict[str, Document] = {}
        self._parsed: LRUCache[tuple[str, str], Parsed] = LRUCache(_REMEMBERED)
        self._readings: LRUCache[tuple[object, ...], Reading] = LRUCache(_REMEMBERED)

    def open(self, uri: str, text: str, version: int) -> Document:
        """A document as it is now; also after each of its changes."""
        shown = Source(to_fs_path(uri) or uri, text)
        texts, problem = self._texts(shown)
        document = self._open[uri] = Document(uri, version, shown, Lines(text), tuple(texts), problem)
        return document

    def _texts(self, shown: Source) -> tuple[list[PolicyText], str]:
        """The texts of a file, and why one of them, or all, cannot be read."""
        try:
            found = self.toolchain.texts_in(shown.file, shown.text)
        except SourceError as error:
            return [], str(error)
        wrong = next((str(one) for one in found if isinstance(one, SourceError)), "")
        return [one for one in found if not isinstance(one, SourceError)], wrong

    def close(self, uri: str) -> None:
        """The document is closed: what counts is the file again."""
        self._open.pop(uri, None)

    def document(self, uri: str) -> Document | None:
        """An open document."""
        return self._open.get(uri)

    def documents(self) -> list[Document]:
        """All open documents."""
        return list(self._open.values())

    def importers(self, document: Document) -> list[Document]:
        """The other open policy files of the folder whose findings may hang on the document."""
        folder = Path(document.shown.file).parent
        return [
            other
            for other in self.documents()
            if other is not document and Path(other.shown.file).parent == folder and not _is_alone(other.shown.text)
        ]

    def readings(self, document: Document) -> Iterator[Reading]:
        """The texts of a document."""
        return (self.reading(document, text) for text in document.texts)

    def reading(self, document: Document, text: PolicyText, source: Source | None = None) -> Reading:
        """What is known of a text; with a `source`, of what the text would be if that stood in its place."""
        own = source or text.source
        if text.starts:
            texts = [(document.uri, document.lines, one.source) for one in document.texts if one.holder == text.holder]
        else:
            texts = self._beside(document)
        around = [(uri, lines, own if one.file == own.file else one) for uri, lines, one in texts]
        key = (document.uri, *((one.file, one.text) for _, _, one in around), own.file)
        known = self._readings.get(key)
        if known is None or known.document is not document:
            parsed = {one.file: (uri, lines, self._parse(one)) for uri, lines, one in around}
            alone = not text.starts and _is_alone(own.text)
            others = [] if alone else [tree for name, (_, _, tree) in parsed.items() if name != own.file]
            known = Reading(document, text, (self._parse(own), *others), parsed, self.toolchain)
            self._readings[key] = known
        return known

    def settings(self, document: Document) -> tuple[Settings, str]:
        """Lint's settings for a document; the defaults, and what is wrong, where they make no sense."""
        path = to_fs_path(document.uri)
        try:
            return self.toolchain.settings_for(Path(path).parent) if path else Settings(), ""
        except SettingsError as error:
            return Settings(), str(error)

    def findings(self, document: Document) -> tuple[list[Diagnostic], str]:
        """All findings at their places in the file, and what is wrong with lint's settings, '' if nothing is."""
        settings, problem = self.settings(document)
        readings = self.readings(document)
        found = [one.text.placed(finding) for one in readings for finding in one.findings(settings)]
        if document.problem:
            found.append(Diagnostic("", Severity.ERROR, document.problem, document.shown.file, Span(0, 0)))
        return found, problem

    def findings_in(self, reading: Reading) -> list[Diagnostic]:
        """All findings of a text at their places in it; settings that make no sense settle nothing."""
        return reading.findings(self.settings(reading.document)[0])

    def _parse(self, source: Source) -> Parsed:
        key = (source.file, source.text)
        found = self._parsed.get(key)
        if found is None:
            found = self._parsed[key] = (source, *parse_file(source))
        return found

    def _beside(self, document: Document) -> list[tuple[str, Lines, Source]]:
        """The policy files of the document's folder, itself among them; of one that is open, what the editor has."""
        path = to_fs_path(document.uri)
        others = self.in_folder(Path(path).parent) if path is not None else ()
        own = (document.uri, document.lines, document.shown)
        return [own, *(one for one in others if one[2].file != document.shown.file)]

    def in_folder(self, folder: Path) -> Iterator[tuple[str, Lines, Source]]:
        """The policy files of a folder, the open ones as they are in the editor."""
        texts = {one.shown.file: one for one in self.documents() if one.shown.file.endswith(".policy")}
        here = {Path(file) for file in texts if Path(file).parent == folder}
        try:
            files = here | {file for file in folder.glob("*.policy") if file.is_file()}
        except OSError:
            files = here
        for file in sorted(files)[:MOST_BESIDE]:
            document = texts.get(str(file))
            if document is not None:
                yield document.uri, document.lines, document.shown
                continue
            with suppress(OSError, SourceError):
                source = read_source(file)
                yield from_fs_path(str(file)) or "", Lines(source.text), source

    def unopened(self, folder: Path) -> dict[str, Document]:
        """The policy files of a folder that are not open, as if they were."""
        return {
            uri: Document(uri, 0, source, lines, tuple(self._texts(source)[0]))
            for uri, lines, source in self.in_folder(folder)
            if uri not in self._open
        }

    def folders_below(self, root: Path) -> set[Path]:
        """The folders with policy files in a workspace, hidden ones left out."""
        found: set[Path] = set()
        for seen, (folder, folders, files) in enumerate(os.walk(root)):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
            if any(name.endswith(".policy") for name in files):
                found.add(Path(folder))
            if seen >= MOST_FOLDERS:
                break
        return found


def _is_alone(text: str) -> bool:
    """Whether a file names nothing of another one: `policyengine lint` looks at its words alone, too."""
    return "import" not in text and "overlay" not in text
