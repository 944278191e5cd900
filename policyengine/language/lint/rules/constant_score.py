"""a score that is the same for every node

A score ranks nodes. One that reads nothing of the node adds the same number to all of them, so it never changes where
a pod goes; normalised, it is the same for all as well.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.types import Shape


@rule("PE3101", Severity.WARNING, __doc__)
def constant_score(subject: Subject) -> Findings:
    """Scores of one value for all nodes, and those whose bounds are one number."""
    for score in subject.own(subject.policy.scores):
        low, high = subject.bounds.of(score.value)
        drawn = "random" in subject.readings.of(score.value).functions
        if score.value.shape is Shape.SCALAR and not drawn:
            yield Finding(f"`{score.name}` is the same for every node, so it ranks none", score.value.span)
        elif low == high:
            yield Finding(f"`{score.name}` is always {low:g}, so it ranks no node", score.value.span)
