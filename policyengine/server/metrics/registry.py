"""Every metric of the scheduler: kube-scheduler's (pkg/scheduler/metrics/metrics.go, v1.36), then our own.

Names, labels and buckets of `scheduler_…` are kube-scheduler's, so its dashboards and alerts work. The help text says
where a meaning differs; docs/metrics.md is made of it. A duration is in seconds.

The metrics belong to the one thread of the event loop, so nothing is locked. A `prometheus_client.Histogram` takes ten
times as long, and a bound pod makes eight entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]


class Family(ABC):
    """A metric: its name, its help text, the names of its labels, and a value for each combination of label values."""

    kind = ""

    def __init__(self, name: str, help: str, labels: Labels = (), buckets: tuple[float, ...] = ()) -> None:
        self.name = name
        self.help = help
        self.labels = labels
        self.buckets = buckets
        """A histogram's upper bounds."""
        self.values: dict[Labels, float] = {}

    @abstractmethod
    def collect(self) -> Metric:
        """The values as prometheus_client writes them."""


class Counter(Family):
    """Numbers that only grow."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        super().__init__(name, help, labels)
        if not labels:
            self.values[()] = 0.0

    def add(self, labels: Labels, number: float = 1.0) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0.0) + number

    def collect(self) -> Metric:
        """See `Family`."""
        family = CounterMetricFamily(self.name.removesuffix("_total"), self.help, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Gauge(Family):
    """Numbers as they are now."""

    kind = "gauge"

    def add(self, labels: Labels, number: float) -> None:
        """Change a number; one that becomes zero is forgotten."""
        value = self.values.get(labels, 0.0) + number
        if value:
            self.values[labels] = value
        else:
            self.values.pop(labels, None)

    def read(self, values: Iterable[tuple[Labels, float]]) -> None:
        """Replace all numbers."""
        self.values = dict(values)

    def collect(self) -> Metric:
        """See `Family`."""
        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Histogram(Family):
    """How many values fell under each bound."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Labels, buckets: tuple[float, ...]) -> None:
        super().__init__(name, help, labels, buckets)
        self._cells: dict[Labels, list[float]] = {}
        """Label values -> values in each bucket, then above all bounds, then the sum of the values."""
        if not labels:
            self._start(())

    def observe(self, labels: Labels, value: float) -> None:
        """Count a value; a bound counts what equals it."""
        cells = self._cells.get(labels)
        if cells is None:
            cells = self._start(labels)
        cells[bisect_left(self.buckets, value)] += 1
        cells[-1] += value

    def count(self, labels: Labels = ()) -> int:
        """How many values were counted."""
        return int(sum(self._cells.get(labels, (0.0,))[:-1]))

    def _start(self, labels: Labels) -> list[float]:
        cells = self._cells[labels] = [0.0] * (len(self.buckets) + 2)
        return cells

    def collect(self) -> Metric:
        """See `Family`; cumulative, with +Inf."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        bounds = [f"{bound:.12g}" for bound in self.buckets] + ["+Inf"]
        for labels, cells in sorted(self._cells.items()):
            family.add_metric(labels, list(zip(bounds, accumulate(cells[:-1]), strict=True)), cells[-1])
        return family


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`start`, `start * factor`, … (`ExponentialBuckets` of Go's client)."""
    return tuple(start * factor**number for number in range(count))


_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)


class Registry:
    """The metrics of one scheduler, in the order in which they are shown."""

    def __init__(self) -> None:
        self._before: list[Callable[[], None]] = []
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
        self.message_queue = Gauge("policyengine_inbox_messages", "Messages that the core has not taken in yet.")
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

    def families(self) -> list[Family]:
        """Every metric, in the order of the table."""
        return [value for value in vars(self).values() if isinstance(value, Family)]

    def before_scrape(self, read: Callable[[], None]) -> None:
        """Call `read` right before the metrics are shown."""
        self._before.append(read)

    def collect(self) -> Iterator[Metric]:
        """What `prometheus_client.generate_latest` wants of a registry."""
        for read in self._before:
            read()
        for family in self.families():
            yield family.collect()
