"""The hash of a policy: SHA-256 of its canonical text with imports, overlays and the values of its parameters.

The canonical text is the words of the blocks in order, without the commas that the grammar leaves open, and after
them the comments. So white space, line breaks and the layout of comments do not count, a text and its formatted form
have one hash, and two texts that mean something else have two. What else stands in the files does not count either:
editing one policy leaves the others as they are. Editing an imported library counts.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.language.parsing.grammar import OPENING
from policyengine.language.parsing.tokens import Token, Tokens, tokens_of
from policyengine.language.syntax import Span

_ITEMS = frozenset(
    {"REQUIRE", "ORDER", "FAIR", "BACKOFF", "FLUSH", "VICTIMS", "MAXVICTIMS", "GIVEN", "AFTER", "EXPECT"}
)
"""The words with which the items of a member begin: a comma before one is the author's to write or not."""
_END = Token("$END", "", 0, 0)
"""What stands behind a block's last word; as a word of no letters it is in every hash there is."""


def policy_hash(policy: ir.Policy, params: Mapping[str, object]) -> str:
    """The hash in hex. `params`: the values that the policy runs with."""
    texts = [_of_block(source, span) for source, span in policy.texts]
    values = {name: str(value) for name, value in sorted(params.items())}
    return sha256(json.dumps([texts, values], ensure_ascii=False).encode()).hexdigest()


@lru_cache(maxsize=256)
def _of_block(source: Source, span: Span) -> tuple[str, ...]:
    return canonical(tokens_of(source), span)


def canonical(cut: Tokens, span: Span) -> tuple[str, ...]:
    """The canonical text of a block without findings: its words with a space behind each, and each comment."""
    words = _words([*_within(cut.tokens, span), _END])
    return " ".join(words), *(comment.text.rstrip() for comment in _within(cut.comments, span))


def _within(tokens: Sequence[Token], span: Span) -> Sequence[Token]:
    first = bisect_left(tokens, span.start, key=lambda token: token.start)
    return tokens[first : bisect_left(tokens, span.end, first, key=lambda token: token.start)]


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    ahead = [*tokens, _END]
    for at, token in enumerate(tokens):
        if token.kind == "ON_ERROR":
            yield "on error"
        elif token.kind != "COMMA" or not _is_open(ahead[at + 1], ahead[at + 2]):
            yield token.text


def _is_open(behind: Token, further: Token) -> bool:
    """Whether a comma says nothing: before a closing bracket, and before what can only be another field or item."""
    return behind.kind in OPENING or further.kind == "COLON" or behind.kind in _ITEMS
