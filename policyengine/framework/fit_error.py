"""The sentence a user reads when no node fits: kube-scheduler's FitError (framework/types.go, v1.36)."""

from __future__ import annotations

from collections.abc import Iterable

NO_NODES = "no nodes available to schedule pods"
"""kube-scheduler's answer in a cluster without nodes."""


def fit_error_message(
    nodes: int, counts: Iterable[tuple[str, int]], pre_filter: str = "", post_filter: str = ""
) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. <post_filter>`.

    `counts` are (reason, number of nodes); they are written count first and sorted as text. When PreFilter
    refused the pod its message stands in their place.
    """
    if nodes == 0:
        return NO_NODES
    said = pre_filter or ", ".join(sorted(f"{count} {reason}" for reason, count in counts))
    message = f"0/{nodes} nodes are available:" + (f" {said}." if said else "")
    return f"{message} {post_filter}" if post_filter else message
