"""Every metric there is: kube-scheduler's (pkg/scheduler/metrics/metrics.go, v1.36), then our own.

Names, labels and buckets of `scheduler_…` are kube-scheduler's, so its dashboards and alerts work. What differs in
meaning is said in the help text, which docs/metrics.md is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric

from policyengine.server.metrics.tallies import Counter, Gauge, Histogram, exponential

Tally = Counter | Gauge | Histogram

_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)


class Registry:
    """The metrics of one scheduler, and what to read right before they are scraped."""

    def __init__(self) -> None:
        self.schedule_attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule pods by result: scheduled, unschedulable (no node fits), error.",
            ("result", "profile"),
        )
        self.attempt_duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of an attempt, its binding included, by result.",
            ("result", "profile"),
            _ATTEMPT,
        )
        self.algorithm_duration = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Time from PreFilter to a chosen node.", (), _ATTEMPT
        )
        self.sli_duration = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first entry into the active queue to its binding, by attempts (15 and more are 15+).",
            ("attempts",),
            exponential(0.01, 2, 20),
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts", "Attempts that a bound pod took.", (), exponential(1, 2, 5)
        )
        self.after_flush = Counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Bound pods that were tried again only because they had waited five minutes: an event that should have "
            "woken them may be missing.",
        )
        self.pending = Gauge(
            "scheduler_pending_pods",
            "Pods that wait, by queue: active, backoff, unschedulable, gated (those held for their gang included).",
            ("queue",),
        )
        self.incoming = Counter(
            "scheduler_queue_incoming_pods_total",
            "Pods that entered a queue, by the queue and the event that brought them.",
            ("queue", "event"),
        )
        self.unschedulable = Gauge(
            "scheduler_unschedulable_pods",
            "Refused pods by the plugin or rule that refused them; a pod refused by several counts for each.",
            ("plugin", "profile"),
        )
        self.point_duration = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time of one extension point: Filter (PreFilter included), Score (PreScore and NormalizeScore included), "
            "PostFilter, Permit (the wait), Bind (the request).",
            ("extension_point", "status", "profile"),
            _POINT,
        )
        self.plugin_evaluations = Counter(
            "scheduler_plugin_evaluation_total",
            "How often a plugin or rule was asked about a pod, at Filter (PreFilter included) and Score (PreScore "
            "included). Identical pods in a row may be asked about once.",
            ("plugin", "extension_point", "profile"),
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims", "Pods chosen to go, by preemption.", (), exponential(1, 2, 7)
        )
        self.preemption_attempts = Counter("scheduler_preemption_attempts_total", "Preemptions that found a node.")
        self.permit_wait = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "Time that pods waited at Permit, by result: allowed, rejected.",
            ("result",),
            _ATTEMPT,
        )
        self.goroutines = Gauge(
            "scheduler_goroutines", "Work under way beside the cycles, by what it does: binding.", ("operation",)
        )
        self.event_handling = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Time in which the core takes in one message, by the message; one of sixteen is timed.",
            ("event",),
            _POINT,
        )
        self.cache_size = Gauge("scheduler_cache_size", "What the cache holds: nodes, pods, assumed_pods.", ("type",))
        self.policy_info = Gauge("policyengine_policy_info", "1 for each policy that serves.", ("policy", "hash"))
        self.reloads = Counter(
            "policyengine_policy_reloads_total",
            "Policies handed to the running scheduler, by result: accepted, removed, rejected.",
            ("result",),
        )
        self.rule_evaluations = Counter(
            "policyengine_rule_evaluations_total",
            "How often a rule or plugin worked out its column of verdicts or scores, whole or patched.",
            ("policy", "rule", "extension_point"),
        )
        self.cache_hits = Counter(
            "policyengine_cache_hits_total",
            "How often a rule's or plugin's column was there already.",
            ("policy", "rule", "extension_point"),
        )
        self.candidate_info = Gauge(
            "policyengine_candidate_info",
            "Each policy that is tried beside the one that serves: 1 while it is, 0 once it was suspended.",
            ("policy", "hash", "mode", "profile"),
        )
        self.candidate_compared = Counter(
            "policyengine_candidate_compared_total",
            "Decisions that a candidate and the serving policy were compared on, since either is what it is.",
            ("policy", "profile"),
        )
        self.divergence = Counter(
            "policyengine_divergence_total",
            "Of these decisions, those that differ, in what: `node` chosen (none included), `feasible` nodes.",
            ("policy", "profile", "in"),
        )
        self.divergence_by_rule = Counter(
            "policyengine_divergence_by_rule_total",
            "Compared decisions in which the rule or plugin makes a difference.",
            ("policy", "profile", "rule"),
        )
        self.candidate_decisions = Counter(
            "policyengine_candidate_decisions_total",
            "Decisions that a canary made, by result: scheduled, unschedulable.",
            ("policy", "profile", "result"),
        )
        self.candidates_suspended = Counter(
            "policyengine_candidates_suspended_total",
            "Candidates that were suspended here: they failed, or cost too much.",
        )
        self.leader = Gauge("policyengine_leader", "1 where this replica may bind, 0 where it stands by.")
        self.inbox = Gauge("policyengine_inbox_messages", "Messages that the core has not taken in yet.")
        self.watch_failing = Gauge(
            "policyengine_watch_failing_seconds",
            "Seconds for which neither a list nor a watch has succeeded, by resource.",
            ("resource",),
        )
        self.extender_requests = Counter(
            "policyengine_extender_client_requests_total",
            "Requests to extenders, by the extender, its verb and the result: ok, error, ignored.",
            ("extender", "verb", "result"),
        )
        self.extender_duration = Histogram(
            "policyengine_extender_client_duration_seconds",
            "Time of a request to an extender.",
            ("extender", "verb"),
            _ATTEMPT,
        )
        self._before: list[Callable[[], None]] = []
        self._others: list[Callable[[], Iterable[Metric]]] = []

    def tallies(self) -> list[Tally]:
        """Every metric, in the order above."""
        return [value for value in vars(self).values() if isinstance(value, Counter | Gauge | Histogram)]

    def before_scrape(self, read: Callable[[], None]) -> None:
        """Have gauges read right before they are shown."""
        self._before.append(read)

    def also(self, families: Callable[[], Iterable[Metric]]) -> None:
        """Show families of others too."""
        self._others.append(families)

    def collect(self) -> Iterator[Metric]:
        """What `prometheus_client.generate_latest` wants of a registry."""
        for read in self._before:
            read()
        for tally in self.tallies():
            yield tally.family()
        for families in self._others:
            yield from families()
