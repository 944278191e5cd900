"""a gang that never applies

Of the gangs of a policy the first whose `when` holds applies. One before this takes every pod that this one is for:
put the more special one first.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule


@rule("PE3304", Severity.WARNING, __doc__)
def shadowed_gang(subject: Subject) -> Findings:
    """Each gang after those that hold wherever it does."""
    gangs = subject.own(subject.policy.gangs)
    for number, gang in enumerate(gangs[:40]):
        given = [gang.when] if gang.when is not None else []
        for earlier in gangs[:number]:
            if earlier.when is None or subject.truth.implied(earlier.when, *given):
                related = (Related(earlier.span, "this one applies"),)
                yield Finding(f"`{gang.name}` never applies: `{earlier.name}` takes its pods", gang.span, None, related)
                break
