"""The language server on stdio: pygls on the outside, `Project` inside.

A change is answered by diagnostics once the typing has paused, of the newest version only. Every other answer is made
of the text as it is when the question comes. All work is done in the event loop's one thread, a text at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from policyengine.language.syntax import Span
from policyengine.server.language_server import code_actions as actions
from policyengine.server.language_server import outline
from policyengine.server.language_server.completion import completion
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


class At(Protocol):
    """A question about a position."""

    @property
    def text_document(self) -> lsp.TextDocumentIdentifier:
        """The document."""

    @property
    def position(self) -> lsp.Position:
        """The place in it."""


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

    # --- documents ------------------------------------------------------------------------------------

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

    # --- places ---------------------------------------------------------------------------------------

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

    def span(self, uri: str, range_: lsp.Range) -> tuple[Reading, Span] | None:
        """The text a range begins in, and the span of it."""
        start, end = self._place(uri, range_.start), self._place(uri, range_.end)
        if start is None:
            return None
        last = end[1] if end is not None and end[0] is start[0] else len(start[0].source.text)
        return start[0], Span(start[1], max(start[1], last))

    def at(self, params: At, answer: Callable[[Reading, int], _T]) -> _T | None:
        """What is answered for a position; None outside of a policy."""
        found = self._place(params.text_document.uri, params.position)
        return answer(*found) if found is not None else None

    # --- the workspace --------------------------------------------------------------------------------

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
    _follow_documents(server)
    _answer_places(server)
    _answer_documents(server)
    return server


def serve(toolchain: Toolchain) -> None:
    """Serves on standard input and output until the client says `exit`, or goes."""
    create_server(toolchain).start_io()


def _follow_documents(server: PolicyServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.took(params.text_document.uri, 0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.took(params.text_document.uri, PAUSE)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(_: lsp.DidSaveTextDocumentParams) -> None:
        server.publish_all()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.left(params.text_document.uri)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed_on_disk(_: lsp.DidChangeWatchedFilesParams) -> None:
        server.publish_all()


def _answer_places(server: PolicyServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        return server.at(params, lambda reading, at: hover(reading, at, server.project.findings_in(reading)))

    triggers = lsp.CompletionOptions(trigger_characters=[".", '"', "?"])

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)
    def on_completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        found = server.at(params, lambda reading, at: completion(server.project, reading, at))
        return lsp.CompletionList(is_incomplete=False, items=found or [])

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def on_definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        return server.at(params, definition)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def on_references(params: lsp.ReferenceParams) -> list[lsp.Location] | None:
        given = params.context.include_declaration
        return server.at(params, lambda reading, at: references(reading, at, given))

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def on_highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight] | None:
        found = server.at(params, highlights)
        return [lsp.DocumentHighlight(range_) for range_ in found] if found is not None else None

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def on_prepare_rename(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        found = server.at(params, renamed_range)
        return lsp.PrepareRenamePlaceholder(*found) if found is not None else None

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def on_rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        try:
            return server.at(params, lambda reading, at: rename(reading, at, params.new_name))
        except CannotRename as error:
            raise JsonRpcInvalidParams(str(error)) from None


def _answer_documents(server: PolicyServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def on_symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        readings = server.readings(params.text_document.uri)
        return [symbol for reading in readings for symbol in outline.document_symbols(reading)]

    @server.feature(lsp.WORKSPACE_SYMBOL)
    def on_workspace_symbols(params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        return server.workspace_symbols(params.query)

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def on_folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        return [one for reading in server.readings(params.text_document.uri) for one in outline.folding(reading)]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def on_formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        reading = next(server.readings(params.text_document.uri), None)
        return actions.formatting(reading) if reading is not None else None

    @server.feature(lsp.TEXT_DOCUMENT_RANGE_FORMATTING)
    def on_range_formatting(params: lsp.DocumentRangeFormattingParams) -> list[lsp.TextEdit] | None:
        reading = next(server.readings(params.text_document.uri), None)
        return actions.formatting(reading, params.range) if reading is not None else None

    kinds = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, actions.FIX_ALL])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def on_code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        found = server.span(params.text_document.uri, params.range)
        if found is None:
            return None
        reading, span = found
        return actions.code_actions(reading, server.project.findings_in(reading), span, params.context.only or ())

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def on_inlay_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        readings = server.readings(params.text_document.uri)
        return [hint for reading in readings for hint in actions.inlay_hints(reading, params.range)]

    words = lsp.SemanticTokensLegend(list(outline.TOKEN_TYPES), list(outline.TOKEN_MODIFIERS))

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, words)
    def on_semantic_tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        readings = list(server.readings(params.text_document.uri))
        # The encoding goes from token to token, so the tokens of several texts are put together before it.
        return lsp.SemanticTokens(data=outline.semantic_tokens(readings))
