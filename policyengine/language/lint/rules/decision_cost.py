"""What a decision costs."""

from __future__ import annotations

from itertools import islice

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.cost import rule_costs
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_OWN = frozenset({("pod", "name"), ("pod", "uid")})


@rule("PE3701", Severity.INFO)
def ends_sharing(subject: Subject) -> Findings:
    """a rule that ends the sharing of results

    Pods that look the same to a policy share their columns of verdicts and scores, so that the hundredth replica of a
    Deployment costs next to nothing. Every pod has its own `pod.name` and `pod.uid`, and its own `random()`: a rule
    that reads them is computed for every pod anew, and so is the order in which it stands.
    """
    # Texts are left out: they are made for refusals only.
    for place in subject.places:
        if isinstance(place.member, ir.Score | ir.Filter | ir.Require) and place.what != "otherwise":
            for part in islice(filter(_own, walk(place.expr, subject.let_value)), 1):
                span = part.span if subject.holds(part.span) else place.expr.span
                yield Finding(f"`{_own(part)}` is another one for every pod: none shares what is computed here", span)


def _own(part: ir.Expr) -> str:
    if isinstance(part, ir.Field) and part.path in _OWN:
        return ".".join(part.path)
    return "random()" if isinstance(part, ir.Call) and part.function == "random" else ""


@rule("PE3702", Severity.WARNING)
def cycle_cost(subject: Subject) -> Findings:
    """a decision that costs more than its budget

    The rules of the policy take longer than the budget to filter and score 5,000 nodes once, without caches. The
    estimate adds up what each operation was measured to cost; the table of costs lies in `language/lint/cost.py`. What
    helps most: leave `matches`, `betaCdf` and aggregates to the rules that need them, behind a `when`; name with `let`
    what several rules compute; ask the pod instead of the node.

    The budget is 5 ms, or `budget = "10ms"` in `policyengine.toml`.
    """
    costs = list(rule_costs(subject.policy, subject.let_value))
    spent = sum(own for _, _, own in costs) / 1e3
    if spent > subject.settings.budget:
        name, span, own = max(costs, key=lambda one: one[2])
        message = (
            f"a decision over 5,000 nodes takes about {spent:.2g} ms, over the budget of "
            f"{subject.settings.budget:g} ms; `{name}` alone takes {own / 1e3:.2g}"
        )
        yield Finding(message, span if subject.holds(span) else subject.written.name.span)
