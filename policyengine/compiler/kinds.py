"""Which kinds of objects a policy's rules read beside nodes and pods: those have to be followed."""

from __future__ import annotations

from policyengine.cluster import pod_groups
from policyengine.language import ir
from policyengine.language.ir_walk import expressions_in, fields


def kinds_read(policy: ir.Policy) -> tuple[str, ...]:
    """The kinds behind the roots that the policy names anywhere, lets included."""
    roots = {field.path[0] for expr in expressions_in(policy) for field in fields(expr)}
    return pod_groups.KINDS if "podGroup" in roots else ()
