"""docs/metrics.md, made from the registry: `python -m tests.docs.metrics_page > docs/metrics.md`."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.server.metrics.process_metrics import BUILD_INFO, EXPIRATION
from policyengine.server.metrics.scheduler_metrics import Family, SchedulerMetrics

_PROCESS = f"""
Beside these there are `process_*` as every client of Prometheus names them, `{BUILD_INFO}` with `version` and `python`,
and, where the port shows a certificate, `{EXPIRATION}`:
when it runs out. The [webhook](operations.md) and the [extender](extender.md) show them too.
"""

_HEAD = """# Metrics

What `/metrics` of a running scheduler shows (see [operations.md](operations.md#metrics-health-and-debug-pages)). Made
from the registry by `python -m tests.docs.metrics_page`.

Metrics called `scheduler_…`, `rest_client_…` and `workqueue_…` are kube-scheduler's (1.36): names, labels and buckets
are its own, so its dashboards and alerts work; a test holds them against what the real one shows. `profile` is the
scheduler name, `plugin` a plugin or a rule of the policy; `name` is a queue of requests: `writes` (bindings, deletions
and what a binding waits for), `background_writes` (events and conditions), `extender_questions`. Those called
`policyengine_…` are ours.

| name | kind | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """The page's text."""
    return _HEAD + "".join(_rows()) + _PROCESS


def _rows() -> Iterator[str]:
    for family in SchedulerMetrics().families():
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield f"| `{family.name}` | {_kind(family)} | {labels} | {family.help} |\n"


def _kind(family: Family) -> str:
    bounds = family.buckets
    if not bounds:
        return family.kind
    return f"{family.kind}, {len(bounds)} buckets from {bounds[0]:g} to {bounds[-1]:g}"


if __name__ == "__main__":
    print(page(), end="")
