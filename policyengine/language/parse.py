"""A file's text -> its syntax tree and everything that is wrong with it, in one run.

The text is cut into tokens, the tokens into members, and each member is parsed by a start rule of its own. So a
broken member costs itself, no more; the block it stands in remembers its name. Policy text is untrusted: no text
raises, and what is too long or too deep is a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from errno import EFBIG
from pathlib import Path

from msgspec.structs import replace

from policyengine import regular_file
from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic, Source, in_order
from policyengine.language.edits import keeping_comments
from policyengine.language.parsing.member_actions import Actions
from policyengine.language.parsing.member_parser import MAX_TEXT, parse_tokens
from policyengine.language.parsing.split import Block, Piece, split
from policyengine.language.parsing.tokens import MAX_FINDINGS, Token, Tokens, tokens_of
from policyengine.language.syntax import Member, NameText, Span
from policyengine.language.syntax_codes import syntax_error

_NAMING = frozenset(["policy", "param", "let", "function", "filter", "score", "gang", "quota", "permit"])

MAX_BLOCKS = 500
"""Policies, libraries and overlays of a file: each sees all params and lets of what it imports, or stands on."""
_TOO_LARGE = "is larger than 1 MiB, the most a policy file may have"


class SourceError(ValueError):
    """A file that is no policy text at all: one sentence that says why."""


def read_source(path: str | Path) -> Source:
    """Reads a policy file. Raises SourceError: it is missing, a folder, unreadable, empty, over 1 MiB or not UTF-8."""
    place = Path(path)
    try:
        raw = regular_file.read(place, MAX_TEXT)
    except FileNotFoundError:
        raise SourceError(f"`{place}` does not exist") from None
    except IsADirectoryError:
        raise SourceError(f"`{place}` is a folder, not a policy file") from None
    except OSError as error:
        if error.errno == EFBIG:
            raise SourceError(f"`{place}` {_TOO_LARGE}") from None
        raise SourceError(f"`{place}` cannot be read: {regular_file.reason(error)}") from None
    return decode_source(raw, str(path))


def decode_source(raw: bytes, file: str) -> Source:
    """The text of a policy file's bytes; a byte order mark is dropped. Raises SourceError: it is empty, over 1 MiB or
    not UTF-8."""
    if len(raw) > MAX_TEXT:
        raise SourceError(f"`{file}` {_TOO_LARGE}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SourceError(f"`{file}` is not UTF-8: byte 0x{raw[error.start]:02x} on line {line}") from None
    if not text.strip():
        raise SourceError(f"`{file}` is empty")
    return Source(file, text)


def parse_file(source: Source) -> tuple[syntax.File, list[Diagnostic]]:
    """The tree of a file, and its findings in order of place. Broken members are absent from the tree."""
    if len(source.text) > MAX_TEXT:
        return syntax.File(), [syntax_error("PE0402", "a file has at most 1 MiB", source.file, Span(0, 0))]
    return _FileParser(source).run()


class _FileParser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.cut: Tokens = tokens_of(source)
        self.actions = Actions(source.file)
        self.findings = list(self.cut.findings)

    def run(self) -> tuple[syntax.File, list[Diagnostic]]:
        if not self.cut.complete:
            return syntax.File(), self.found()
        blocks, wrong = split(self.cut.tokens, self.source)
        self.findings += wrong
        own = [block for block in blocks if block.head.rule != "import"]
        if len(own) > MAX_BLOCKS:
            message = f"the file has more than {MAX_BLOCKS} policies, libraries and overlays; split the file"
            return syntax.File(), [syntax_error("PE0402", message, self.source.file, own[MAX_BLOCKS].head.span)]
        found = [member for block in blocks if (member := self.block(block))]
        if len(self.findings) > MAX_FINDINGS:
            end, message = len(self.source.text), f"more than {MAX_FINDINGS} mistakes: the rest is not shown"
            more = syntax_error("PE0404", message, self.source.file, Span(end, end))
            self.findings = [*in_order(self.findings)[:MAX_FINDINGS], more]
        if not blocks and not self.findings:
            message = "the file holds no `policy`, `library`, `overlay` or `import`"
            self.findings.append(syntax_error("PE0110", message, self.source.file, Span(0, 0)))
        file = syntax.File(
            imports=tuple(m for m in found if isinstance(m, syntax.Import)),
            libraries=tuple(m for m in found if isinstance(m, syntax.Library)),
            policies=tuple(m for m in found if isinstance(m, syntax.Policy)),
            overlays=tuple(m for m in found if isinstance(m, syntax.Overlay)),
        )
        return file, self.found()

    def found(self) -> list[Diagnostic]:
        """The findings in order, with fixes that keep comments."""
        return [replace(one, fix=keeping_comments(self.source, one.fix)) for one in in_order(self.findings)]

    def block(self, block: Block) -> Member | None:
        """A block with its members. A policy whose head is broken keeps them, so that they are checked."""
        head = self.member(block.head)
        members, broken = [], []
        for piece in block.members:
            if member := self.member(piece):
                members.append(member)
            elif name := _name_of(piece):
                broken.append(name)
        if head is None and block.head.rule == "policy":
            place = block.head.tokens[0].span
            title = NameText(span=place, text=_name_of(block.head))
            head = self.dressed(syntax.Policy(span=place, name=title, members=()), block.head)
        if isinstance(head, syntax.Block):
            span = Span(block.head.tokens[0].start, block.end)
            return replace(head, span=span, members=tuple(members), broken=tuple(broken))
        return head

    def member(self, piece: Piece) -> Member | None:
        """One member; None where it is broken or none at all."""
        if not piece.rule or len(self.findings) > MAX_FINDINGS:
            return None
        end = piece.tokens[-1].end
        tokens: Sequence[Token] = [*piece.tokens, Token("$END", "", end, end)]
        found = parse_tokens(piece.rule, tokens, self.actions, self.cut.broken)
        self.findings += self.actions.findings
        self.actions.findings.clear()
        return self.dressed(found, piece) if isinstance(found, Member) else None

    def dressed(self, member: Member, piece: Piece) -> Member:
        """The member with what its place tells: its span, its keyword, its doc comment."""
        keyword = piece.tokens[0].span
        docs = self.cut.docs(self.source, keyword.start)
        doc = "\n".join(one.text[3:].removeprefix(" ").rstrip() for one in reversed(docs))
        return replace(member, span=piece.span, keyword_span=keyword, doc=doc)


def _name_of(piece: Piece) -> str:
    """The name a broken member would have defined, '' for one that defines none."""
    if len(piece.tokens) < 2 or piece.rule not in _NAMING:
        return ""
    token = piece.tokens[1]
    return token.text.strip("\"'") if token.kind == "STRING" or token.text.isidentifier() else ""
