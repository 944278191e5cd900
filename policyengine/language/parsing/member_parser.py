"""Lark at work on the tokens of one member or expression: a parse tree, or where it stops and what would have fitted.

Lark's contextual lexer decides which words are keywords. It reads the tokens' texts once more, each behind a space,
so that a mended token counts as what was meant; the trees have the tokens' own places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from lark import Token as LarkToken
from lark import Tree, UnexpectedInput, UnexpectedToken

from policyengine.language.diagnostics import Diagnostic, in_order
from policyengine.language.parsing.expression_actions import MAX_DEPTH, ExpressionActions
from policyengine.language.parsing.grammar import CLOSING, OPENING, OPERATORS, RESERVED, keyword_terminals, parser
from policyengine.language.parsing.tokens import Token, Tokens, tokenise
from policyengine.language.parsing.unexpected import explain
from policyengine.language.syntax import Expr, Span
from policyengine.language.syntax_codes import syntax_error

MAX_TEXT = 1024 * 1024
"""Bytes of a file, characters of an expression."""
_SPACE = "\f"
"""White space that stands in no terminal: `on` and `error` with a comment between are two words."""
_NAME_GOES_ON = OPERATORS | {"COMMA", "RBRACE", "ASC", "DESC", "MISSING", "ORDER", "FAIR", "BACKOFF", "FLUSH"}
"""What follows a name in an expression, but no keyword that may stand where a key of `order by` may."""


def parse_expression(text: str, file: str = "<expression>") -> tuple[Expr | None, list[Diagnostic]]:
    """The tree of an expression and what is wrong with it; the tree is None where there is none.

    Spans are character offsets in the text. No text raises.
    """
    if len(text) > MAX_TEXT:
        return None, [syntax_error("PE0402", "an expression has at most 1 MiB", file, Span(0, 0))]
    return parse_cut(tokenise(text, file), file)


def parse_cut(cut: Tokens, file: str) -> tuple[Expr | None, list[Diagnostic]]:
    """The expression that tokens make, and all findings, those about characters included."""
    if not cut.complete:
        return None, in_order(cut.findings)
    actions = ExpressionActions(file)
    found = parse_tokens("expression", cut.tokens, actions, cut.broken)
    return found, in_order([*cut.findings, *actions.findings])


def parse_tokens(rule: str, tokens: Sequence[Token], actions: ExpressionActions, broken: set[int]) -> Any:
    """The value of a start rule over tokens, of which the last is an `$END`; None where it has none.

    What is wrong is added to the actions' findings.

    Arguments:
        broken: starts of tokens that a finding covers already.
    """
    actions.is_shallow = len(tokens) <= MAX_DEPTH
    if not actions.is_shallow and (deep := _too_deep(tokens)) is not None:
        message = f"brackets stand more than {MAX_DEPTH} deep here; give parts of it names with `let`"
        actions.findings.append(syntax_error("PE0401", message, actions.file, deep.span))
        return None
    run = _Run(rule, tokens)
    if run.stop is None:
        made = actions.build(run.tree)
        made = None if actions.is_too_deep else made
    else:
        made = None
        stack = run.parser.parser_state.value_stack
        for before, part in pairwise([None, *stack]):  # what is wrong before the stop is told too
            if isinstance(part, Tree):
                actions.build(
                    Tree("chain", [before, *part.children], part.meta) if part.data.startswith("__chain") else part
                )
        if not any(token.start in broken for token in tokens[: run.stop + 1]):
            expected = frozenset(_Run(rule, tokens, run.stop).parser.accepts())
            actions.findings.append(explain(rule, tokens, run.stop, expected, actions.file))
    actions.finish()
    return made


def parse_tree(rule: str, tokens: Sequence[Token]) -> Tree[LarkToken]:
    """Lark's tree of tokens without a mistake, of which the last is an `$END`."""
    made: Tree[LarkToken] = _Run(rule, tokens).tree
    return made


def expected_behind(rule: str, tokens: Sequence[Token]) -> frozenset[str]:
    """The terminals that may come behind tokens a start rule begins with; none where these fit nothing already."""
    run = _Run(rule, tokens)
    return frozenset(run.parser.accepts()) if run.stop is None else frozenset()


class _Run:
    """One parse of tokens, or of those before an index.

    `tree` is what they make with their `$END`, `stop` the index of the one that fits nothing.
    """

    def __init__(self, rule: str, tokens: Sequence[Token], before: int | None = None) -> None:
        made: Any = parser().parse_interactive(_SPACE.join(token.text for token in tokens), rule)
        self.parser = made
        self.tree: Any = None
        self.stop: int | None = None
        lexed = self.parser.lexer_thread.lex(self.parser.parser_state)
        for index, token in enumerate(tokens[:before]):
            following = tokens[index + 1].kind if index + 1 < len(tokens) else "$END"
            try:
                self.tree = self.feed(lexed, token, following)
            except UnexpectedInput:
                self.stop = index
                break

    def feed(self, lexed: Iterator[LarkToken], token: Token, following: str) -> Any:
        """Feeds the lexer's next token, at the place of ours.

        Raises:
            UnexpectedInput: it fits nothing.
        """
        if token.kind == "$END":
            return self.parser.feed_eof()
        found = next(lexed)
        found.start_pos, found.end_pos = token.start, token.end
        if found.type not in keyword_terminals() or found.type in RESERVED:
            return self.parser.feed_token(found)
        choices = self.parser.choices()
        if "NAME" in choices and choices["NAME"][0].name == "Shift" and following in _NAME_GOES_ON:
            found.type = "NAME"
        try:
            return self.parser.feed_token(found)
        except UnexpectedToken:
            # What the keyword completes, a name in its place completes too: nothing to undo.
            found.type = "NAME"
            return self.parser.feed_token(found)


def _too_deep(tokens: Sequence[Token]) -> Token | None:
    depth = 0
    for token in tokens:
        if token.kind in CLOSING:
            depth += 1
            if depth > MAX_DEPTH + 1:  # a member's own braces are one
                return token
        elif token.kind in OPENING:
            depth -= 1
    return None
