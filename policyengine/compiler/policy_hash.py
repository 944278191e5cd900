"""The hash of a policy: SHA-256 of its canonical text with imports, overlays and the values of its parameters.

The canonical text is the words of the blocks in order, without the commas that the grammar leaves open, and after
them the comments. So white space, line breaks and the layout of comments do not count, a text and its formatted form
have one hash, and two texts that mean something else have two. What else stands in the files does not count either:
editing one policy leaves the others as they are. Editing an imported library counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from policyengine.language import ir
from policyengine.language.parsing.terminals import OPENING
from policyengine.language.parsing.tokens import Token, tokenise

_ITEMS = frozenset(
    {"REQUIRE", "ORDER", "FAIR", "BACKOFF", "FLUSH", "VICTIMS", "MAXVICTIMS", "GIVEN", "AFTER", "EXPECT"}
)
"""The words with which the items of a member begin: a comma before one is the author's to write or not."""


def policy_hash(policy: ir.Policy, params: Mapping[str, object]) -> str:
    """The hash in hex. `params`: the values that the policy runs with."""
    texts = [canonical(source.slice(span)) for source, span in policy.texts]
    values = {name: str(value) for name, value in sorted(params.items())}
    return sha256(json.dumps([texts, values], ensure_ascii=False).encode()).hexdigest()


@lru_cache(maxsize=256)
def canonical(text: str) -> tuple[str, ...]:
    """The canonical text of a block without findings: its words with a space between them, and each comment."""
    cut = tokenise(text, "")
    return " ".join(_words(cut.tokens)), *(comment.text.rstrip() for comment in cut.comments)


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if token.kind == "ON_ERROR":
            yield "on error"
        elif token.kind != "COMMA" or not _is_open(tokens[at + 1], tokens[at + 2]):
            yield token.text


def _is_open(behind: Token, further: Token) -> bool:
    """Whether a comma says nothing: before a closing bracket, and before what can only be another field or item."""
    return behind.kind in OPENING or further.kind == "COLON" or behind.kind in _ITEMS
