"""What each rule of a policy was made from, in short: two policies whose fingerprints of a rule are equal have the same
rule, so that a pod which it refused need not be tried again when one takes over from the other.

A policy is cut into its rules (filters, scores, permits, …) and what is left: `let`, `use`, `queue`, `gang`, the values
of params. What is left counts for every rule; it alone makes the queue. So more may count as changed than was: white
space does not, a comment does. A policy that imports or is overlaid is one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from policyengine.framework.profile import Fingerprints
from policyengine.language import ir
from policyengine.language.syntax import Span


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
