"""One expression alone: `parse_expression`, and the run of the automaton that everything parsed goes through."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

from policyengine.language.diagnostics import Diagnostic, in_order
from policyengine.language.parsing.automaton import Action, Unexpected, run
from policyengine.language.parsing.expression_actions import MAX_DEPTH, ExpressionActions
from policyengine.language.parsing.terminals import CLOSING, OPENING
from policyengine.language.parsing.tokens import Token, Tokens, tokenise
from policyengine.language.parsing.unexpected import explain
from policyengine.language.syntax import Expr, Span
from policyengine.language.syntax_codes import syntax_error

MAX_TEXT = 1024 * 1024
"""Bytes of a file, characters of an expression."""


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
    found = parse_tokens("expression", cut.tokens, actions, bound_actions(actions), cut.broken)
    return found, in_order([*cut.findings, *actions.findings])


def parse_tokens(
    start: str, tokens: Sequence[Token], actions: ExpressionActions, bound: Mapping[str, Action], broken: frozenset[int]
) -> Any:
    """The value of a start rule over tokens, or None, as where it is too deep; what is wrong is added to the actions'
    findings.

    Arguments:
        bound: `bound_actions` of the actions.
        broken: starts of tokens that a finding covers already.
    """
    actions.is_shallow = len(tokens) <= MAX_DEPTH
    if not actions.is_shallow and (deep := _too_deep(tokens)) is not None:
        message = f"brackets stand more than {MAX_DEPTH} deep here; give parts of it names with `let`"
        actions.findings.append(syntax_error("PE0401", message, actions.file, deep.span))
        return None
    try:
        made = run(start, tokens, bound)
        return None if actions.is_too_deep else made
    except Unexpected as stop:
        if not any(token.start in broken for token in tokens[: stop.index + 1]):
            actions.findings.append(explain(start, tokens, stop.index, stop.expected, actions.file))
        return None
    finally:
        actions.finish()


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


def bound_actions(actions: ExpressionActions) -> Mapping[str, Action]:
    """The actions by the name of their rule, looked up once for each object."""
    return _Bound(actions)


class _Bound(dict[str, Action]):
    """Rules to methods; a rule named as a word of Python has a method with a `_` behind it."""

    def __init__(self, actions: ExpressionActions) -> None:
        super().__init__()
        self._actions = actions

    def __missing__(self, rule: str) -> Action:
        action: Action = getattr(self._actions, f"{rule}_" if keyword.iskeyword(rule) else rule)
        self[rule] = action
        return action
