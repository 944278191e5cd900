"""Where a parse stopped, and the findings made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Related
from policyengine.language.parsing.grammar import BEGINNINGS, CLOSING, OPENING, RESERVED, keyword_terminals
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax_codes import quoted, syntax_error


class Stop(Struct, frozen=True):
    """Where a parse stopped: the start rule, the tokens, which of them, and what would have fitted."""

    rule: str
    tokens: Sequence[Token]
    index: int
    expected: frozenset[str]
    file: str

    @property
    def token(self) -> Token:
        """What fits nothing."""
        return self.tokens[self.index]

    @property
    def before(self) -> Token:
        """What stands before it; of the first token, itself."""
        return self.tokens[max(0, self.index - 1)]

    @property
    def following(self) -> Token:
        """What stands behind it; of the last token, itself."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    @property
    def wants_operator(self) -> bool:
        """Whether an expression could end or go on here."""
        return "COMPARISON" in self.expected

    def finding(
        self, code: str, message: str, at: Token, instead: str | None = None, related: tuple[Related, ...] = ()
    ) -> Diagnostic:
        """A finding at a token; `instead` is what to write in its place."""
        fix = None
        if instead is not None:
            fix = Fix(f"write {quoted(instead)}" if instead else "remove it", (Edit(at.span, instead),))
        return syntax_error(code, message, self.file, at.span, fix, related)


def is_word(token: Token) -> bool:
    """Whether it is a name, or a keyword."""
    return token.kind == "NAME" or token.kind in keyword_terminals()


def begins_value(token: Token) -> bool:
    """Whether an expression may begin with it: keywords are names there."""
    return token.kind in BEGINNINGS or (token.kind in keyword_terminals() and token.kind not in RESERVED)


def open_brackets(tokens: Iterable[Token]) -> list[Token]:
    """The brackets that are open behind tokens, the innermost last; what closes another kind counts."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind in CLOSING:
            opened.append(token)
        elif token.kind in OPENING and opened:
            opened.pop()
    return opened
