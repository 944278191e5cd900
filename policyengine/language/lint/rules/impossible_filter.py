"""a filter that no node can pass

The conditions of the filter contradict each other, or its `when`, or what a field can be: whatever the cluster looks
like, every pod that the filter is asked about is refused on every node. Conditions are compared by the values they
allow: numbers by intervals, strings by sets.

Instead of `require node.zone == "a" && node.zone == "b"` write `||`; instead of `require node.podCount < 0`, a bound
that a node can meet.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule


@rule("PE3001", Severity.WARNING, __doc__)
def impossible_filter(subject: Subject) -> Findings:
    """The first require that leaves nothing of what those before it, and `when`, let through."""
    for filter_ in subject.own(subject.policy.filters):
        given = [filter_.when] if filter_.when is not None else []
        if given and subject.truth.impossible(*given):
            continue  # a `when` that is never true: PE3004
        for number, require in enumerate(filter_.requires):
            if require.on_error is None and subject.truth.impossible(*given, require.condition):
                before = filter_.requires[number - 1].span if number else None
                alone = number == 0 or subject.truth.impossible(*given[:1], require.condition)
                message = "no node can pass: " + (
                    "this is never true" if alone else "this cannot hold together with what is required before it"
                )
                related = (Related(before, "required here"),) if before is not None and not alone else ()
                yield Finding(message, require.condition.span, related=related)
                break
            given.append(require.condition)
