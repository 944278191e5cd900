"""The language server on stdio: pygls on the outside, `Project` inside.

A change is answered by diagnostics once the typing has paused, of the newest version only. Every other answer is made
of the text as it is when the question comes. All work is done in the event loop's one thread, a text at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import json_rpc
from pygls.uris import to_fs_path

from policyengine.language.syntax import Span
from policyengine.server.language_server import code_actions as actions
from policyengine.server.language_server import outline
from policyengine.server.language_server.code_completion import completion
from policyengine.server.language_server.documents import Document, Toolchain
from policyengine.server.language_server.hover import hover
from policyengine.server.language_server.navigation import (
    CannotRename,
    definition,
    highlights,
    references,
    rename,
    renamed_range,
)
from policyengine.server.language_server.project import Project, Reading
from policyengine.version import __version__

PAUSE = 0.15
"""Seconds without a change before diagnostics are made."""
MOST_SYMBOLS = 500
"""Symbols of a workspace in one answer."""
_T = TypeVar("_T")


class PolicyServer(LanguageServer):
    """The server and its project.

    Clients send whole texts: policies are small, and the library that would put pieces together takes other characters
    for ends of lines than LSP does.
    """

    def __init__(self, toolchain: Toolchain) -> None:
        super().__init__("policyengine", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.project = Project(toolchain)
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._told: set[str] = set()

    def took(self, uri: str, pause: float) -> None:
        """A document was opened or changed."""
        text = self.workspace.get_text_document(uri)
        self.project.open(uri, text.source, text.version or 0)
        self.publish_later(uri, pause)

    def left(self, uri: str) -> None:
        """A document was closed."""
        self.project.close(uri)
        if (waiting := self._waiting.pop(uri, None)) is not None:
            waiting.cancel()
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def publish_later(self, uri: str, pause: float) -> None:
        """Diagnostics of a document, and of the open ones that may import from it, unless it changes again before."""
        if (waiting := self._waiting.pop(uri, None)) is not None:
            waiting.cancel()
        self._waiting[uri] = asyncio.get_running_loop().call_later(pause, self._publish, uri)

    def _publish(self, uri: str) -> None:
        self._waiting.pop(uri, None)
        document = self.project.document(uri)
        if document is None:
            return
        self._publish_one(document)
        for other in self.project.importers(document):
            if other.uri not in self._waiting:
                self._publish_one(other)

    def _publish_one(self, document: Document) -> None:
        found, problem = self.project.findings(document)
        if problem and problem not in self._told:
            self._told.add(problem)
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, problem))
        diagnostics = [document.published(finding) for finding in found]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(document.uri, diagnostics, version=document.version)
        )

    def publish_all(self) -> None:
        """Diagnostics of all open documents: a file or a setting changed on disk."""
        for document in self.project.documents():
            self.publish_later(document.uri, PAUSE)

    def readings(self, uri: str) -> Iterator[Reading]:
        """The policy texts of an open document."""
        document = self.project.document(uri)
        return self.project.readings(document) if document is not None else iter(())

    def _place(self, uri: str, position: lsp.Position) -> tuple[Reading, int] | None:
        document = self.project.document(uri)
        found = document.text_at(document.lines.offset(position)) if document is not None else None
        if document is None or found is None:
            return None
        return self.project.reading(document, found[0]), found[1]

    def at(self, params: Any, answer: Callable[[Reading, int], _T]) -> _T | None:
        """What is answered for a position; None outside of a policy. `params`: with `text_document` and `position`."""
        found = self._place(params.text_document.uri, params.position)
        return answer(*found) if found is not None else None

    def each(self, params: Any, answer: Callable[[Reading], list[_T]]) -> list[_T]:
        """What is answered for each policy text of a document. `params`: with `text_document`."""
        return [one for reading in self.readings(params.text_document.uri) for one in answer(reading)]

    def formatted(self, uri: str, wanted: lsp.Range | None = None) -> list[lsp.TextEdit] | None:
        """The edits that format a document, or a range of it."""
        reading = next(self.readings(uri), None)
        return actions.formatting(reading, wanted) if reading is not None else None

    def acted(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        """The code actions of a range, in the text it begins in."""
        start, end = (self._place(params.text_document.uri, at) for at in (params.range.start, params.range.end))
        if start is None:
            return None
        reading, first = start
        last = end[1] if end is not None and end[0] is reading else len(reading.source.text)
        span = Span(first, max(first, last))
        return actions.code_actions(reading, self.project.findings_in(reading), span, params.context.only or ())

    def renamed(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        """The edits that rename what stands at a position. Raises JsonRpcInvalidParams: the new name cannot be."""
        try:
            return self.at(params, lambda reading, at: rename(reading, at, params.new_name))
        except CannotRename as error:
            raise JsonRpcInvalidParams(str(error)) from None

    def workspace_symbols(self, query: str) -> list[lsp.WorkspaceSymbol]:
        """Members whose names hold the letters of the query in their order, of open files and the workspace's."""
        found: list[lsp.WorkspaceSymbol] = []
        for uri, container, symbol in self._symbols():
            if _matches(query.lower(), symbol.name.lower()):
                place = lsp.Location(uri, symbol.selection_range)
                found.append(lsp.WorkspaceSymbol(place, symbol.name, symbol.kind, container_name=container or None))
            if len(found) >= MOST_SYMBOLS:
                break
        return found

    def _symbols(self) -> Iterator[tuple[str, str, lsp.DocumentSymbol]]:
        """Every symbol with the address of its file and the block it stands in."""
        documents = {document.uri: document for document in self.project.documents()}
        for folder in self._folders():
            documents = {**self.project.unopened(folder), **documents}
        for uri, document in documents.items():
            for reading in self.project.readings(document):
                for block in outline.document_symbols(reading):
                    yield uri, "", block
                    yield from ((uri, block.name, member) for member in block.children or ())

    def _folders(self) -> Iterator[Path]:
        """The folders of the workspace that hold policies, those beside open files among them."""
        roots = [to_fs_path(folder.uri) for folder in self.workspace.folders.values()]
        folders = {Path(document.shown.file).parent for document in self.project.documents()}
        for root in roots:
            if root is not None:
                folders |= self.project.folders_below(Path(root))
        yield from sorted(folders)


def _matches(query: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in query)


def create_server(toolchain: Toolchain) -> PolicyServer:
    """The server with everything it answers."""
    server = PolicyServer(toolchain)
    for method, answer in _answers(server).items():
        server.feature(method, _OPTIONS.get(method))(answer)
    return server


def serve(toolchain: Toolchain) -> None:
    """Serves on standard input and output until the client says `exit`, or goes."""
    logging.getLogger(json_rpc.__name__).addFilter(_is_no_refusal)
    create_server(toolchain).start_io()


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """Whether a line tells of more than what the client is answered: pygls adds a traceback to each refused rename."""
    return not (record.exc_info and isinstance(record.exc_info[1], JsonRpcInvalidParams))


_OPTIONS: Mapping[str, object] = {
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionOptions(trigger_characters=[".", '"', "?"]),
    lsp.TEXT_DOCUMENT_RENAME: lsp.RenameOptions(prepare_provider=True),
    lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, actions.FIX_ALL]),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: lsp.SemanticTokensLegend(
        list(outline.TOKEN_TYPES), list(outline.TOKEN_MODIFIERS)
    ),
}


def _answers(server: PolicyServer) -> dict[str, Callable[[Any], object]]:
    """Each method of LSP that the server knows -> what it does with the method's params."""
    project = server.project
    return {
        lsp.TEXT_DOCUMENT_DID_OPEN: lambda asked: server.took(asked.text_document.uri, 0),
        lsp.TEXT_DOCUMENT_DID_CHANGE: lambda asked: server.took(asked.text_document.uri, PAUSE),
        lsp.TEXT_DOCUMENT_DID_SAVE: lambda _: server.publish_all(),
        lsp.TEXT_DOCUMENT_DID_CLOSE: lambda asked: server.left(asked.text_document.uri),
        lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: lambda _: server.publish_all(),
        lsp.TEXT_DOCUMENT_HOVER: lambda asked: server.at(
            asked, lambda reading, at: hover(reading, at, project.findings_in(reading))
        ),
        lsp.TEXT_DOCUMENT_COMPLETION: lambda asked: lsp.CompletionList(
            is_incomplete=False,
            items=server.at(asked, lambda reading, at: completion(project, reading, at)) or [],
        ),
        lsp.TEXT_DOCUMENT_DEFINITION: lambda asked: server.at(asked, definition),
        lsp.TEXT_DOCUMENT_REFERENCES: lambda asked: server.at(
            asked, lambda reading, at: references(reading, at, asked.context.include_declaration)
        ),
        lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: lambda asked: server.at(
            asked, lambda reading, at: [lsp.DocumentHighlight(range_) for range_ in highlights(reading, at)]
        ),
        lsp.TEXT_DOCUMENT_PREPARE_RENAME: lambda asked: server.at(asked, renamed_range),
        lsp.TEXT_DOCUMENT_RENAME: partial(server.renamed),
        lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: lambda asked: server.each(asked, outline.document_symbols),
        lsp.WORKSPACE_SYMBOL: lambda asked: server.workspace_symbols(asked.query),
        lsp.TEXT_DOCUMENT_FOLDING_RANGE: lambda asked: server.each(asked, outline.folding),
        lsp.TEXT_DOCUMENT_FORMATTING: lambda asked: server.formatted(asked.text_document.uri),
        lsp.TEXT_DOCUMENT_RANGE_FORMATTING: lambda asked: server.formatted(asked.text_document.uri, asked.range),
        lsp.TEXT_DOCUMENT_CODE_ACTION: partial(server.acted),  # pygls marks what it registers; a method takes no mark
        lsp.TEXT_DOCUMENT_INLAY_HINT: lambda asked: server.each(
            asked, lambda reading: actions.inlay_hints(reading, asked.range)
        ),
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: lambda asked: lsp.SemanticTokens(
            data=outline.semantic_tokens(server.readings(asked.text_document.uri))
        ),
    }
