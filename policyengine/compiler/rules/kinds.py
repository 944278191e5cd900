"""Which kinds of objects a policy's rules read beside nodes and pods: those have to be followed."""

from __future__ import annotations

from policyengine.cluster import pod_groups
from policyengine.compiler.lower.scope import Scope, all_read
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in


def kinds_read(policy: ir.Policy, scope: Scope) -> tuple[str, ...]:
    """The kinds behind the roots that the policy names anywhere, lets included."""
    return pod_groups.KINDS if "podGroup" in all_read(expressions_in(policy), scope).roots else ()
