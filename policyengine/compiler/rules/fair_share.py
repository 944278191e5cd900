"""`queue { fair by e [weight {…}] }`: which tenant a pod belongs to.

Pods whose key has no value share one tenant, "".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.compiler.columns.column import attempt
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.signature import Decisions
from policyengine.framework.profile import FairShare
from policyengine.language import ir

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


def fair_share(queue: ir.Queue, scope: Scope, decisions: Decisions) -> FairShare | None:
    """How the queue serves tenants; None where it knows none."""
    if queue.fair_by is None:
        return None
    key = scope.closure(queue.fair_by)

    def tenant(pod: PodInfo) -> str:
        found = attempt(key, decisions.about(pod))
        return found if isinstance(found, str) else ""

    return FairShare(tenant, dict(queue.fair_weights))
