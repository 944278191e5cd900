"""A real server process over its standard input and output, as an editor drives it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from policyengine.commands.linting.files import linted
from policyengine.commands.lsp import toolchain
from policyengine.language.diagnostics import Source
from policyengine.language.policy_text import PolicyText
from policyengine.language.syntax import Span
from policyengine.server.language_server import code_actions as actions
from policyengine.server.language_server import outline
from policyengine.server.language_server.code_completion import completion
from policyengine.server.language_server.hover import hover
from policyengine.server.language_server.navigation import CannotRename, rename
from policyengine.server.language_server.project import Project
from tests.server.language_server.readings import TRAINING

PATIENCE = 30.0
"""Seconds for any answer: far more than one takes, so that a busy machine fails no test."""
TEXT = TRAINING.read_text(encoding="utf-8")


class Editor:
    """A client of the server with what it was told."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def told(found: lsp.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(found)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> lsp.TextDocumentIdentifier:
        uri = self.uri(name)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "policy", 1, text)))
        return lsp.TextDocumentIdentifier(uri)

    def change(self, name: str, text: str, version: int) -> None:
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, self.uri(name)),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def findings(self, name: str) -> lsp.PublishDiagnosticsParams:
        """The next diagnostics of a file."""
        while True:
            found = await asyncio.wait_for(self.told.get(), PATIENCE)
            if found.uri == self.uri(name):
                return found

    async def ask(self, method: str, params: object) -> object:
        return await asyncio.wait_for(self.client.protocol.send_request_async(method, params), PATIENCE)


@pytest.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    client = LanguageClient("test", "1")
    found = Editor(client, tmp_path)
    await client.start_io(sys.executable, "-m", "policyengine.commands.main", "lsp", "--stdio")
    try:
        answer = await asyncio.wait_for(
            client.initialize_async(
                lsp.InitializeParams(
                    capabilities=lsp.ClientCapabilities(),
                    root_uri=tmp_path.as_uri(),
                    workspace_folders=[lsp.WorkspaceFolder(tmp_path.as_uri(), "here")],
                )
            ),
            PATIENCE,
        )
        assert answer.capabilities.hover_provider
        client.initialized(lsp.InitializedParams())
        yield found
        await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
        client.exit(None)
        await asyncio.wait_for(client._server.wait(), PATIENCE)
        assert client._server.returncode == 0
    finally:
        if client._server.returncode is None:
            client._server.kill()
        await client.stop()


async def test_a_refused_rename_leaves_no_traceback_in_the_log(editor: Editor):
    document = editor.open("a.policy", 'policy "p" {\n  let a = 1\n}\n')
    with pytest.raises(JsonRpcException, match="`a b` is no name"):
        await editor.ask(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameParams(document, lsp.Position(1, 6), "a b"))
    log = editor.client._server.stderr
    assert log is not None
    with pytest.raises(TimeoutError):  # what pygls logs is written before the answer
        await asyncio.wait_for(log.read(1), 0.2)


async def test_a_text_is_judged_when_it_is_opened_and_after_each_pause(editor: Editor):
    editor.open("a.policy", 'policy "p" {\n  let 😀 = 1\n  let a = "😀" + nod\n}\n')
    found = await editor.findings("a.policy")
    assert found.version == 1
    unknown = next(one for one in found.diagnostics if one.code == "PE1001")
    assert unknown.range == lsp.Range(lsp.Position(2, 17), lsp.Position(2, 20))
    for version in range(2, 12):
        editor.change("a.policy", f'policy "p" {{\n  let a = {version} +\n}}\n', version)
    editor.change("a.policy", 'policy "p" {\n  let a = 1\n}\n', 12)
    found = await editor.findings("a.policy")
    assert found.version == 12
    assert all(one.severity is not lsp.DiagnosticSeverity.Error for one in found.diagnostics)


async def test_an_edit_of_a_library_is_seen_by_those_who_import_it(editor: Editor):
    (editor.folder / "safe.policy").write_text('library "safe" { let x = 1 }\n', encoding="utf-8")
    editor.open("user.policy", 'import "safe"\npolicy "p" {\n  let a = safe.x\n}\n')
    first = await editor.findings("user.policy")
    assert not any(one.severity is lsp.DiagnosticSeverity.Error for one in first.diagnostics)
    editor.open("safe.policy", 'library "safe" { let y = 1 }\n')
    second = await editor.findings("user.policy")
    assert any(one.severity is lsp.DiagnosticSeverity.Error for one in second.diagnostics)


async def test_every_question_is_answered(editor: Editor):
    document = editor.open("a.policy", TEXT)
    line = next(number for number, text in enumerate(TEXT.split("\n")) if "require node.free" in text)
    at = lsp.Position(line, TEXT.split("\n")[line].index("headroom") + 2)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(999, 0))
    here = {"text_document": document, "position": at}
    options = lsp.FormattingOptions(2, True)
    ask = editor.ask
    assert "param headroom" in str(await ask(lsp.TEXT_DOCUMENT_HOVER, lsp.HoverParams(**here)))
    items = await ask(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionParams(**here))
    assert "headroom" in {item.label for item in items.items}  # type: ignore[attr-defined]
    assert await ask(lsp.TEXT_DOCUMENT_DEFINITION, lsp.DefinitionParams(**here))
    context = lsp.ReferenceContext(include_declaration=True)
    assert await ask(lsp.TEXT_DOCUMENT_REFERENCES, lsp.ReferenceParams(context=context, **here))
    assert await ask(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, lsp.DocumentHighlightParams(**here))
    assert await ask(lsp.TEXT_DOCUMENT_PREPARE_RENAME, lsp.PrepareRenameParams(**here))
    assert await ask(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameParams(new_name="spare", **here))
    assert await ask(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, lsp.DocumentSymbolParams(document))
    symbols = await ask(lsp.WORKSPACE_SYMBOL, lsp.WorkspaceSymbolParams("hdrm"))
    assert {"headroom", "memory-headroom"} <= {symbol.name for symbol in symbols}  # type: ignore[attr-defined]
    assert await ask(lsp.TEXT_DOCUMENT_FOLDING_RANGE, lsp.FoldingRangeParams(document))
    assert not await ask(lsp.TEXT_DOCUMENT_FORMATTING, lsp.DocumentFormattingParams(document, options))
    ranged = lsp.DocumentRangeFormattingParams(document, whole, options)
    assert not await ask(lsp.TEXT_DOCUMENT_RANGE_FORMATTING, ranged)
    asked = lsp.CodeActionParams(document, whole, lsp.CodeActionContext([]))
    assert await ask(lsp.TEXT_DOCUMENT_CODE_ACTION, asked)
    assert await ask(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintParams(document, whole))
    tokens = await ask(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensParams(document))
    assert tokens.data  # type: ignore[attr-defined]


async def test_a_range_that_ends_before_it_begins_is_the_place_of_its_beginning(editor: Editor):
    document = editor.open("a.policy", 'policy "p" {\n  filter "f" { require nod.ready }\n}\n')
    backward = lsp.Range(lsp.Position(1, 25), lsp.Position(0, 0))
    asked = lsp.CodeActionParams(document, backward, lsp.CodeActionContext([]))
    assert "`node`" in str(await editor.ask(lsp.TEXT_DOCUMENT_CODE_ACTION, asked))


async def test_what_cannot_be_answered_is_said_or_empty_and_a_closed_text_has_no_findings(editor: Editor):
    document = editor.open("a.policy", 'policy "p" {\n  let a = 1\n  let b = a\n}\n')
    params = lsp.RenameParams(new_name="b", text_document=document, position=lsp.Position(1, 6))
    with pytest.raises(Exception, match="the new name makes a mistake"):
        await editor.ask(lsp.TEXT_DOCUMENT_RENAME, params)
    assert await editor.ask(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, lsp.DocumentSymbolParams(document))
    nowhere = lsp.TextDocumentIdentifier(editor.uri("nowhere.policy"))
    assert await editor.ask(lsp.TEXT_DOCUMENT_HOVER, lsp.HoverParams(nowhere, lsp.Position(0, 0))) is None
    assert not await editor.ask(lsp.TEXT_DOCUMENT_FOLDING_RANGE, lsp.FoldingRangeParams(nowhere))
    broken = editor.open("b.policy", "policy {")
    assert (await editor.findings("b.policy")).diagnostics
    editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(broken))
    assert not (await editor.findings("b.policy")).diagnostics


# --- what holds for any text -----------------------------------------------------------------------------

PIECES = (
    *("", " ", "\n", "}", "{", '"', "'''", ".", "= ", "(", ")", "[?", "\r", "\x00", "\u2028", "\U0001f600"),
    *("let ", "node.", 'import "x"\n', 'overlay "o" on "training" {\n', 'test "t" { given node "a"'),
    "// lint: allow PE3201 because x\n",
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), st.sampled_from(PIECES)), min_size=1, max_size=4)


def everything(project: Project, uri: str, offset: int) -> None:
    """Every question about a place."""
    document = project.document(uri)
    assert document is not None
    project.findings(document)
    whole = document.lines.range(Span(0, len(document.shown.text)))
    for reading in project.readings(document):
        found = project.findings_in(reading)
        hover(reading, offset, found)
        completion(project, reading, offset)
        outline.document_symbols(reading)
        outline.folding(reading)
        outline.semantic_tokens([reading])
        actions.inlay_hints(reading, whole)
        actions.formatting(reading)
        actions.code_actions(reading, found, Span(0, len(reading.source.text)), ())
        try:
            rename(reading, offset, "other")
        except CannotRename as refusal:
            assert str(refusal)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(EDITS)
def test_no_sequence_of_edits_keeps_a_question_from_being_answered(edits: list[tuple[float, int, str]]):
    project, text, uri = Project(toolchain()), TEXT, "untitled:a.policy"
    for version, (place, removed, added) in enumerate(edits):
        at = round(place * len(text))
        text = text[:at] + added + text[at + removed :]
        project.open(uri, text, version)
        everything(project, uri, min(at + len(added), len(text)))


@pytest.mark.parametrize("path", sorted(TRAINING.parent.glob("*.policy")), ids=lambda path: path.stem)
def test_the_editor_is_told_what_lint_says(path: Path):
    project = Project(toolchain())
    text = path.read_text(encoding="utf-8")
    document = project.open(path.as_uri(), text, 1)
    source = Source(str(path), text)
    (told,) = linted([PolicyText(source, source)])
    assert project.findings(document)[0] == list(told.findings)
