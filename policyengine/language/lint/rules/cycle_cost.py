"""a decision that costs more than its budget

The rules of the policy take longer than the budget to judge 5,000 nodes once, when nothing is kept from before. The
estimate adds up what each operation was measured to cost; the table of costs lies in `language/lint/cost.py`. What
helps most: leave `matches`, `betaCdf` and aggregates to the rules that need them, behind a `when`; name with `let` what
several rules compute; ask the pod instead of the node.

The budget is 5 ms, or `budget = "10ms"` in `policyengine.toml`.
"""

from __future__ import annotations

from policyengine.language.lint.cost import most_expensive, policy_cost
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3702", Severity.WARNING, __doc__)
def cycle_cost(subject: Subject) -> Findings:
    """The sum over all rules, reported at the most expensive of them."""
    spent = policy_cost(subject.policy, subject.let_value) / 1e3
    if spent > subject.settings.budget:
        name, span, own = most_expensive(subject.policy, subject.let_value)
        message = (
            f"a decision over 5,000 nodes takes about {spent:.2g} ms, over the budget of "
            f"{subject.settings.budget:g} ms; `{name}` alone takes {own / 1e3:.2g}"
        )
        yield Finding(message, span if subject.holds(span) else subject.written.name.span)
