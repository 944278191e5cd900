"""Plugins of a policy: what its base has, and where they are named."""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.subject import Subject
from policyengine.language.syntax import Span


def in_base(subject: Subject, name: str) -> bool:
    """Whether the base runs the plugin."""
    facts = subject.plugins.get(name)
    if facts is None or not facts.in_base or subject.policy.base == "none":
        return False
    return subject.policy.base == "kubernetes" or facts.filters or not facts.scores


def scores_in_base(subject: Subject, name: str) -> bool:
    """Whether the plugin's score counts in the base."""
    return subject.policy.base == "kubernetes" and in_base(subject, name) and subject.plugins[name].scores


def base_span(subject: Subject) -> Span:
    """Where the base is named; the policy's name where it is not."""
    found = subject.written_as(syntax.Base)
    return found[0].name.span if found else subject.written.name.span


def disable_of(subject: Subject, name: str) -> Span:
    """Where a plugin is disabled."""
    for member in subject.written_as(syntax.Disable):
        if member.plugin.text == name:
            return member.plugin.span
    return subject.written.name.span
