"""Cuts a file's tokens into blocks and members before anything is parsed, so that a mistake costs one member.

Where a member begins is told by its keyword and what stands behind it: `let x`, `score "…"`, `queue {`. No
expression has a name before a name or a string. One that begins its line ends whatever is still open before it;
so a bracket left open reaches no further than the next member, and one too many closes no policy for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Related, Source, listed, replacing
from policyengine.language.parsing.grammar import BINARY, CLOSING, OPENING, STARTS, keyword_terminals
from policyengine.language.parsing.habits import MEMBERS_ELSEWHERE
from policyengine.language.parsing.tokens import MAX_FINDINGS, Token
from policyengine.language.syntax import Span
from policyengine.language.syntax_codes import quoted, syntax_error
from policyengine.suggestion import closest

_BLOCKS = ("policy", "library", "overlay")
_AT_FILE_LEVEL = (*_BLOCKS, "import")
_MEMBERS = tuple(rule for rule in STARTS if rule not in (*_BLOCKS, "import", "expression"))
ALLOWED = {
    "policy": frozenset(_MEMBERS),
    "library": frozenset({"param", "let", "function"}),
    "overlay": frozenset({"param", "let", "function", "filter", "score", "quota", "test"}),
}
"""The members a block may have."""
_FILE_LEVEL = frozenset({"IMPORT", "LIBRARY", "POLICY", "OVERLAY"})
_QUOTED = _FILE_LEVEL | {"SCHEDULER", "FILTER", "SCORE", "GANG", "QUOTA", "PERMIT", "TEST"}
_BARE = frozenset(["BASE", "USE", "DISABLE", "PARAM", "LET", "FUNCTION", "ON"])
_SURELY = {"LET": ("EQUAL", "COLON"), "PARAM": ("EQUAL", "COLON"), "FUNCTION": ("LPAR",), "ON": ("WHEN", "LOG")}
"""What stands behind the word that follows."""
_BRACED = frozenset(["QUEUE", "PREEMPT", "BIND"])
_BEGINNING = _QUOTED | _BARE | _BRACED | {*_SURELY, "SHARE"}
"""The keywords that a member or block may begin with."""
_GOES_ON = BINARY | {"DOT", "COMMA", "COLON", "EQUAL", "LPAR", "LSQB", "QMARK", "NOT", "DOTS"}
_GOES_ON |= {"GIVEN", "WHEN", "REQUIRE", "BY"}
"""After these an expression or a name is still to come, so no member begins."""
_WANTING = {"AS", "ON", "WEIGHT", "NORMALIZE", "ELSE", "LOG"}
"""Keywords of clauses that have something behind them; a name that ends an expression may be the same word."""
_CLAUSES = {"when", "weight", "normalize", "reverse", "range", "values", "on", "log", "as", "else", "asc", "desc", "by"}
_CLAUSES |= {"tier", "missing", "fair", "order", "backoff", "flush", "require", "and", "or", "not", "is", "in"}
"""Words that may begin a line inside a member."""


class Piece(Struct):
    """The tokens of one member, or of a block's head. The rule is its keyword; '' for what is no member."""

    rule: str
    tokens: list[Token]

    @property
    def span(self) -> Span:
        """From the keyword to the last token."""
        return Span(self.tokens[0].start, self.tokens[-1].end)


class Block(Struct):
    """A policy, library or overlay, with its members; or an import, which has none."""

    head: Piece
    members: list[Piece] = field(default_factory=list)
    end: int = 0


def split(tokens: Sequence[Token], source: Source) -> tuple[list[Block], list[Diagnostic]]:
    """The blocks of a file and what is wrong with how it is put together. The last token is an `$END`."""
    splitter = _Splitter(tokens, source)
    splitter.run()
    return splitter.blocks, splitter.findings


class _Splitter:
    def __init__(self, tokens: Sequence[Token], source: Source) -> None:
        self.tokens, self.source = tokens, source
        self.kinds = [token.kind for token in tokens]
        self.blocks: list[Block] = []
        self.findings: list[Diagnostic] = []
        self.at = 0
        self.words = keyword_terminals() - {"IN"} | {"NAME"}

    def run(self) -> None:
        while (token := self.tokens[self.at]).kind != "$END":
            rule = self.block_rule()
            if rule == "import":
                self.blocks.append(Block(Piece("import", self.take_until_start())))
            elif rule:
                self.block(rule)
            elif self.blocks and self.blocks[-1].head.rule != "import" and self.begins(self.at):
                self.outside(self.blocks[-1])
            else:
                self.stray(token)

    # --- file level -----------------------------------------------------------------------------------

    def block_rule(self) -> str:
        """The rule of the block that begins here; a misspelt one counts where the rest looks like one."""
        token, following = self.tokens[self.at], self.tokens[self.at + 1]
        if token.kind in _FILE_LEVEL:
            return token.text
        near = self.closest(token, _AT_FILE_LEVEL)
        if near and following.kind == "STRING":
            self.unknown(token, near)
            return near
        return ""

    def block(self, rule: str) -> None:
        head = self.head(rule)
        block = Block(head)
        self.blocks.append(block)
        if self.tokens[self.at].kind == "LBRACE":
            opening = self.tokens[self.at]
            self.at += 1
            self.body(block, opening)
        else:
            token = self.tokens[self.at]
            at_end = token.kind == "$END"
            shown = "the end of the file" if at_end else quoted(token.text)
            message = f"found {shown}, expected `{{` and the members of the {rule}"
            self.report("PE0101", message, self.tokens[self.at - 1].span if at_end else token.span)
            if self.begins(self.at) and not self.block_begins(self.at):
                self.body(block, None)
        block.end = self.tokens[self.at - 1].end

    def head(self, rule: str) -> Piece:
        """Everything up to the block's `{`, which is the first one that stands in no bracket."""
        start, depth = self.at, 0
        self.at += 1
        while (kind := self.kinds[self.at]) != "$END" and not (self.begins(self.at) and self.starts_line(self.at)):
            # Behind an operator or an opening bracket a `{` begins a map.
            if kind == "LBRACE" and not depth and self.kinds[self.at - 1] not in _GOES_ON:
                break
            depth += (kind in CLOSING) - (kind in OPENING)
            self.at += 1
        return Piece(
            rule, [replace(self.tokens[start], kind=rule.upper(), text=rule), *self.tokens[start + 1 : self.at]]
        )

    def outside(self, block: Block) -> None:
        """Members behind a block's `}`: one report, then they are read as the block's own."""
        token, closing = self.tokens[self.at], self.tokens[self.at - 1]
        message = f"`{token.text}` stands outside of the {block.head.rule}: the `}}` before it closes it"
        related = (Related(closing.span, "closed here"),)
        self.findings.append(syntax_error("PE0107", message, self.source.file, token.span, related=related))
        self.body(block, None)
        block.end = self.tokens[self.at - 1].end

    def stray(self, token: Token) -> None:
        """Something at file level that is no block: one report up to the next block."""
        if self.begins(self.at):
            self.report("PE0109", f"`{token.text}` stands outside of any policy, library or overlay", token.span)
        elif token.kind in OPENING:
            self.closes_nothing(token)
        elif token.kind != "UNREADABLE":
            self.unknown(token, self.closest(token, _AT_FILE_LEVEL), "file", _AT_FILE_LEVEL)
        self.at += 1
        while self.tokens[self.at].kind != "$END" and not self.block_begins(self.at):
            self.at += 1

    def block_begins(self, at: int) -> bool:
        return self.tokens[at].kind in _FILE_LEVEL and (self.begins(at) or self.starts_line(at))

    # --- members --------------------------------------------------------------------------------------

    def body(self, block: Block, opening: Token | None) -> None:
        """The members up to the `}` of the block; without an opening token none needs to come."""
        while (token := self.tokens[self.at]).kind != "$END" and not self.block_begins(self.at):
            if token.kind == "RBRACE":
                self.at += 1
                return
            if token.kind in OPENING:
                self.closes_nothing(token)
                self.at += 1
                continue
            self.member(block)
        if opening:
            self.report("PE0106", f"the `{{` of this {block.head.rule} is never closed by `}}`", opening.span)

    def member(self, block: Block) -> None:
        token = self.tokens[self.at]
        tokens = self.take_until_start()
        rule = token.text if token.text in _MEMBERS else ""
        if not rule:
            if token.kind != "UNREADABLE":
                known, word = self.allowed(block), MEMBERS_ELSEWHERE.get(token.text.lower())
                self.unknown(token, word if word in known else self.closest(token, known), block.head.rule, known)
            tokens = [replace(tokens[0], kind="$UNKNOWN"), *tokens[1:]]
        elif rule not in ALLOWED[block.head.rule]:
            article = "an" if block.head.rule == "overlay" else "a"
            message = f"{article} {block.head.rule} has no `{rule}`: it holds {listed(self.allowed(block))}"
            self.report("PE0109", message, token.span)
        block.members.append(Piece(rule, tokens))

    def allowed(self, block: Block) -> list[str]:
        return [name for name in _MEMBERS if name in ALLOWED[block.head.rule]]

    def take_until_start(self) -> list[Token]:
        """The tokens of a member: up to where the next begins, or the bracket that closes its block."""
        kinds, words, start = self.kinds, self.words, self.at
        at, opened, count = start + 1, list[str](), dict.fromkeys(CLOSING, 0)
        while (kind := kinds[at]) != "$END":
            if kind in _BEGINNING and self.begins(at) and (not opened or self.starts_line(at)):
                break
            if not opened and kind in words and at > start + 1 and self.looks_begun(at):
                break
            if kind in CLOSING:
                opened.append(kind)
                count[kind] += 1
            elif kind == "RBRACE" and not count["LBRACE"]:
                break
            elif (opening := OPENING.get(kind)) and count[opening]:
                while (closed := opened.pop()) != opening:
                    count[closed] -= 1
                count[opening] -= 1
            at += 1
        self.at = at
        return list(self.tokens[start:at])

    # --- where members begin --------------------------------------------------------------------------

    def begins(self, at: int) -> bool:
        """Whether a keyword stands here with what only a member has behind it."""
        kind = self.tokens[at].kind
        if kind not in _BEGINNING:
            return False
        following = self.tokens[min(at + 1, len(self.tokens) - 1)]
        if self.surely_begins(at):
            return True
        if self.goes_on(at):
            return False
        if kind in _BARE:
            return self.is_word(following) or (kind in ("USE", "DISABLE") and following.kind == "STRING")
        if kind in _BRACED:
            return following.kind == "LBRACE" or (kind == "PREEMPT" and following.kind == "WHEN")
        return kind == "SHARE" and following.kind == "INT"

    def surely_begins(self, at: int) -> bool:
        """Whether no expression at all could have these tokens, whatever stands before them."""
        kinds = [token.kind for token in self.tokens[at : at + 3]]
        if at and self.tokens[at - 1].kind in ("GIVEN", "DOT"):
            return False
        if kinds[0] in _QUOTED:
            return kinds[1] == "STRING"
        return (
            kinds[0] in _SURELY
            and len(kinds) == 3
            and kinds[2] in _SURELY[kinds[0]]
            and self.is_word(self.tokens[at + 1])
        )

    def goes_on(self, at: int) -> bool:
        """Whether the token before wants something behind it. A word behind a `.` is a field: it wants nothing."""
        if not at or self.tokens[at - 1].kind not in _GOES_ON:
            return False
        return not (at > 1 and self.tokens[at - 2].kind == "DOT" and self.is_word(self.tokens[at - 1]))

    def looks_begun(self, at: int) -> bool:
        """A word at the start of a line that is no keyword of a member, but stands as one would."""
        token, following = self.tokens[at], self.tokens[at + 1]
        if not self.is_word(token) or token.text in _CLAUSES or not self.starts_line(at):
            return False
        if self.goes_on(at) or self.tokens[at - 1].kind in _WANTING:
            return False
        if token.text in _MEMBERS:
            return following.kind in ("LBRACE", "EQUAL") or self.is_word(following)
        return following.kind in ("STRING", "LBRACE") or (self.is_word(following) and following.text not in _CLAUSES)

    def starts_line(self, at: int) -> bool:
        """Whether nothing but white space and comments stands before a token on its line."""
        if not at:
            return True
        return self.source.text.find("\n", self.tokens[at - 1].end, self.tokens[at].start) >= 0

    def is_word(self, token: Token) -> bool:
        return token.kind in self.words

    def closest(self, token: Token, known: Iterable[str]) -> str | None:
        """The word that was meant, while there is something to say about it."""
        return closest(token.text, known) if self.is_word(token) and len(self.findings) < MAX_FINDINGS else None

    def unknown(self, token: Token, near: str | None, holder: str = "", known: Sequence[str] = ()) -> None:
        """A word that begins nothing; without one that was meant, what a policy, library, overlay or file holds."""
        message, fix = f"{quoted(token.text)} starts no member", None
        if not near and holder:
            message += f"; {'an' if holder == 'overlay' else 'a'} {holder} holds {listed(known)}"
        if near:
            message += f"; did you mean `{near}`?"
            fix = replacing(token.span, near)
        self.report("PE0108", message, token.span, fix)

    def closes_nothing(self, token: Token) -> None:
        self.report("PE0107", f"`{token.text}` closes nothing", token.span, Fix("remove it", (Edit(token.span, ""),)))

    def report(self, code: str, message: str, span: Span, fix: Fix | None = None) -> None:
        self.findings.append(syntax_error(code, message, self.source.file, span, fix))
