"""The hash of a policy, and a fingerprint of each of its rules.

The hash is SHA-256 of the policy's canonical text with imports, overlays and the values of its parameters. The
canonical text is the words of the blocks in order, without the commas that the grammar leaves open, and after them
the comments. So white space, line breaks and the layout of comments do not count: a text and its formatted form have
one hash, and two texts that mean something else have two. What else stands in the files does not count either.
Editing an imported library does.

Two policies whose fingerprints of a rule are equal have the same rule: a pod that it refused need not be tried again
when one takes over from the other. For that a policy is cut into its rules and what is left: `let`, `use`, `queue`,
`gang`, the values of params. What is left counts for every rule; it alone makes the queue. A comment counts, white
space does not. A policy that imports or is overlaid is one piece.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

from policyengine.framework.profile import Fingerprints
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


def fingerprints(policy: ir.Policy, params: Mapping[str, object], digest: str) -> Fingerprints:
    """The fingerprints of a policy with these values of its params; `digest` is its hash."""
    if len(policy.texts) != 1:
        return Fingerprints(digest, {})
    source = policy.source
    given = repr(sorted((name, str(value)) for name, value in params.items()))
    queue = _digest(given, " ".join(source.slice(span) for span in _between(policy)))
    rules: dict[str, str] = {}
    for name, span in _rules(policy):
        rules[name] = _digest(queue, rules.get(name, ""), source.slice(span))
    return Fingerprints(queue, rules)


def _rules(policy: ir.Policy) -> Iterator[tuple[str, Span]]:
    for members in (policy.filters, policy.scores, policy.permits, policy.quotas):
        yield from ((rule.name, rule.span) for rule in members)


def _between(policy: ir.Policy) -> Iterator[Span]:
    """What is left of the policy's text without its rules and tests."""
    apart = [span for _, span in _rules(policy)]
    apart += [span for test in policy.tests if isinstance(span := getattr(test, "span", None), Span)]
    at = policy.span.start
    for span in sorted(apart, key=lambda one: one.start):
        if span.start >= at:
            yield Span(at, span.start)
            at = span.end
    yield Span(at, policy.span.end)


def _digest(*texts: str) -> str:
    return sha256("\0".join(" ".join(text.split()) for text in texts).encode()).hexdigest()
