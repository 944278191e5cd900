"""Every metric there is, as a table: kube-scheduler's (pkg/scheduler/metrics/metrics.go, v1.36), then our own.

Names, labels and buckets of `scheduler_…` are kube-scheduler's, so its dashboards and alerts work. What differs in
meaning is said in the help text, which docs/metrics.md is made of. A duration is in seconds.
"""

# ruff: noqa: RUF009  (`counter`, `gauge` and `histogram` make a `field` each)

from __future__ import annotations

from dataclasses import dataclass, field

from policyengine.server.metrics.tallies import Counter, Gauge, Histogram, exponential


def counter(name: str, help: str, labels: tuple[str, ...] = ()) -> Counter:
    """A field that starts as a `Counter` of its own."""
    return field(default_factory=lambda: Counter(name, help, labels))


def gauge(name: str, help: str, labels: tuple[str, ...] = ()) -> Gauge:
    """A field that starts as a `Gauge` of its own."""
    return field(default_factory=lambda: Gauge(name, help, labels))


def histogram(name: str, help: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
    """A field that starts as a `Histogram` of its own; `buckets`: upper bounds."""
    return field(default_factory=lambda: Histogram(name, help, labels, buckets))


_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)


@dataclass(eq=False)
class Metrics:
    """The metrics of one scheduler, in the order in which they are shown."""

    schedule_attempts: Counter = counter(
        "scheduler_schedule_attempts_total",
        "Attempts to schedule pods by result: scheduled, unschedulable (no node fits), error.",
        ("result", "profile"),
    )
    attempt_duration: Histogram = histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "Time of an attempt, its binding included, by result.",
        ("result", "profile"),
        _ATTEMPT,
    )
    algorithm_duration: Histogram = histogram(
        "scheduler_scheduling_algorithm_duration_seconds", "Time from PreFilter to a chosen node.", (), _ATTEMPT
    )
    sli_duration: Histogram = histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "Time from a pod's first entry into the active queue to its binding, by attempts (15 and more are 15+).",
        ("attempts",),
        exponential(0.01, 2, 20),
    )
    pod_attempts: Histogram = histogram(
        "scheduler_pod_scheduling_attempts", "Attempts that a bound pod took.", (), exponential(1, 2, 5)
    )
    after_flush: Counter = counter(
        "scheduler_pod_scheduled_after_flush_total",
        "Bound pods that were tried again only because they had waited five minutes: an event that should have "
        "woken them may be missing.",
    )
    pending: Gauge = gauge(
        "scheduler_pending_pods",
        "Pods that wait, by queue: active, backoff, unschedulable, gated (those held for their gang included).",
        ("queue",),
    )
    incoming: Counter = counter(
        "scheduler_queue_incoming_pods_total",
        "Pods that entered a queue, by the queue and the event that brought them.",
        ("queue", "event"),
    )
    unschedulable: Gauge = gauge(
        "scheduler_unschedulable_pods",
        "Refused pods by the plugin or rule that refused them; a pod refused by several counts for each.",
        ("plugin", "profile"),
    )
    point_duration: Histogram = histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "Time of one extension point: Filter (PreFilter included), Score (PreScore and NormalizeScore included), "
        "PostFilter, Permit (the wait), Bind (the request).",
        ("extension_point", "status", "profile"),
        _POINT,
    )
    plugin_evaluations: Counter = counter(
        "scheduler_plugin_evaluation_total",
        "How often a plugin or rule was asked about a pod, at Filter (PreFilter included) and Score (PreScore "
        "included). Identical pods in a row may be asked about once.",
        ("plugin", "extension_point", "profile"),
    )
    preemption_victims: Histogram = histogram(
        "scheduler_preemption_victims", "Pods chosen to go, by preemption.", (), exponential(1, 2, 7)
    )
    preemption_attempts: Counter = counter("scheduler_preemption_attempts_total", "Preemptions that found a node.")
    permit_wait: Histogram = histogram(
        "scheduler_permit_wait_duration_seconds",
        "Time that pods waited at Permit, by result: allowed, rejected.",
        ("result",),
        _ATTEMPT,
    )
    goroutines: Gauge = gauge(
        "scheduler_goroutines", "Work under way beside the cycles, by what it does: binding.", ("operation",)
    )
    event_handling: Histogram = histogram(
        "scheduler_event_handling_duration_seconds",
        "Time in which the core takes in one message, by the message; one of sixteen is timed.",
        ("event",),
        _POINT,
    )
    cache_size: Gauge = gauge("scheduler_cache_size", "What the cache holds: nodes, pods, assumed_pods.", ("type",))

    policy_info: Gauge = gauge("policyengine_policy_info", "1 for each policy that serves.", ("policy", "hash"))
    reloads: Counter = counter(
        "policyengine_policy_reloads_total",
        "Policies handed to the running scheduler, by result: accepted, removed, rejected.",
        ("result",),
    )
    rule_evaluations: Counter = counter(
        "policyengine_rule_evaluations_total",
        "How often a rule or plugin worked out its column of verdicts or scores, whole or patched.",
        ("policy", "rule", "extension_point"),
    )
    cache_hits: Counter = counter(
        "policyengine_cache_hits_total",
        "How often a rule's or plugin's column was there already.",
        ("policy", "rule", "extension_point"),
    )
    candidate_info: Gauge = gauge(
        "policyengine_candidate_info",
        "Each policy that is tried beside the one that serves: 1 while it is, 0 once it was suspended.",
        ("policy", "hash", "mode", "profile"),
    )
    candidate_compared: Counter = counter(
        "policyengine_candidate_compared_total",
        "Decisions that a candidate and the serving policy were compared on, since either is what it is.",
        ("policy", "profile"),
    )
    divergence: Counter = counter(
        "policyengine_divergence_total",
        "Of these decisions, those that differ, in what: `node` chosen (none included), `feasible` nodes.",
        ("policy", "profile", "in"),
    )
    divergence_by_rule: Counter = counter(
        "policyengine_divergence_by_rule_total",
        "Compared decisions in which the rule or plugin makes a difference.",
        ("policy", "profile", "rule"),
    )
    candidate_decisions: Counter = counter(
        "policyengine_candidate_decisions_total",
        "Decisions that a canary made, by result: scheduled, unschedulable.",
        ("policy", "profile", "result"),
    )
    candidates_suspended: Counter = counter(
        "policyengine_candidates_suspended_total",
        "Candidates that were suspended here: they failed, or cost too much.",
    )
    leader: Gauge = gauge("policyengine_leader", "1 where this replica may bind, 0 where it stands by.")
    inbox: Gauge = gauge("policyengine_inbox_messages", "Messages that the core has not taken in yet.")
    watch_failing: Gauge = gauge(
        "policyengine_watch_failing_seconds",
        "Seconds for which neither a list nor a watch has succeeded, by resource.",
        ("resource",),
    )
    extender_requests: Counter = counter(
        "policyengine_extender_client_requests_total",
        "Requests to extenders, by the extender, its verb and the result: ok, error, ignored.",
        ("extender", "verb", "result"),
    )
    extender_duration: Histogram = histogram(
        "policyengine_extender_client_duration_seconds",
        "Time of a request to an extender.",
        ("extender", "verb"),
        _ATTEMPT,
    )
