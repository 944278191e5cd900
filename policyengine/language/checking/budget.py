"""What one decision costs at most, told from the policy alone: policy text is untrusted."""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.checking.check_codes import OVER_BUDGET
from policyengine.language.checking.context import Report
from policyengine.language.ir.ir_walk import expressions_in
from policyengine.language.rewrite import cost
from policyengine.language.syntax import Span

MOST_COST = 200_000
"""In the units of `rewrite.cost`: a column operation is ten. At 5,000 nodes that is about a tenth of a second."""


def check_cost(report: Report, policy: ir.Policy, span: Span) -> None:
    """Reports a policy whose expressions cost too much together; a let counts once."""
    total = sum(map(cost, expressions_in(policy)))
    if total > MOST_COST:
        message = f"one decision costs about {total:,} steps, and at most {MOST_COST:,} are allowed"
        report.error(OVER_BUDGET, f"{message}; name what is repeated with `let`, and nest macros less deeply", span)
