"""Every metric of the scheduler: kube-scheduler's, those of its client and its work queues, then our own.

Names, labels and buckets of all but `policyengine_…` are kube-scheduler's (v1.36: pkg/scheduler/metrics/metrics.go,
component-base/metrics/prometheus), so its dashboards and alerts work. The help text says where a meaning differs;
docs/metrics.md is made of it. A duration is in seconds.

The metrics belong to the one thread of the event loop, so nothing is locked. A `prometheus_client.Histogram` takes ten
times as long, and a bound pod makes eight entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]


class Family:
    """A metric: its name, its help text, the names of its labels, and a value for each combination of label values."""

    kind = ""
    shown_as: type[CounterMetricFamily] | type[GaugeMetricFamily]

    def __init__(self, name: str, help: str, labels: Labels = (), buckets: tuple[float, ...] = ()) -> None:
        self.name = name
        self.help = help
        self.labels = labels
        self.buckets = buckets
        """A histogram's upper bounds."""
        self.values: dict[Labels, float] = {}

    def collect(self) -> Metric:
        """The values as prometheus_client writes them."""
        family = self.shown_as(self.name, self.help, labels=self.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Counter(Family):
    """Numbers that only grow. One without labels is shown from the start."""

    kind = "counter"
    shown_as = CounterMetricFamily

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        super().__init__(name, help, labels)
        if not labels:
            self.values[()] = 0.0

    def add(self, labels: Labels = (), number: float = 1.0) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0.0) + number


class Gauge(Family):
    """Numbers as they are now."""

    kind = "gauge"
    shown_as = GaugeMetricFamily

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
_REST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_WORK = exponential(10e-9, 10, 10)
_POINT = exponential(0.0001, 2, 12)


def _counter(name: str, help: str, labels: str = "") -> Counter:
    found: Counter = field(default_factory=lambda: Counter(name, help, tuple(labels.split())))
    return found


def _gauge(name: str, help: str, labels: str = "") -> Gauge:
    found: Gauge = field(default_factory=lambda: Gauge(name, help, tuple(labels.split())))
    return found


def _histogram(name: str, help: str, buckets: tuple[float, ...], labels: str = "") -> Histogram:
    found: Histogram = field(default_factory=lambda: Histogram(name, help, tuple(labels.split()), buckets))
    return found


@dataclass
class SchedulerMetrics:
    """The metrics of one scheduler, in the order in which they are shown."""

    schedule_attempts: Counter = _counter(
        "scheduler_schedule_attempts_total",
        "Attempts to schedule pods by result: scheduled, unschedulable (no node fits), error.",
        "result profile",
    )
    attempt_duration: Histogram = _histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "Time of an attempt, its binding included, by result.",
        _ATTEMPT,
        "result profile",
    )
    algorithm_duration: Histogram = _histogram(
        "scheduler_scheduling_algorithm_duration_seconds", "Time from PreFilter to a chosen node.", _ATTEMPT
    )
    sli_duration: Histogram = _histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "Time from a pod's first entry into the active queue to its binding, by attempts (15 and more are 15+).",
        exponential(0.01, 2, 20),
        "attempts",
    )
    pod_attempts: Histogram = _histogram(
        "scheduler_pod_scheduling_attempts", "Attempts that a bound pod took.", exponential(1, 2, 5)
    )
    after_flush: Counter = _counter(
        "scheduler_pod_scheduled_after_flush_total",
        "Bound pods that were tried again only because they had waited five minutes: an event that should have "
        "woken them may be missing.",
    )
    pending: Gauge = _gauge(
        "scheduler_pending_pods",
        "Pods that wait, by queue: active, backoff, unschedulable, gated (those held for their gang included).",
        "queue",
    )
    incoming: Counter = _counter(
        "scheduler_queue_incoming_pods_total",
        "Pods that entered a queue, by the queue and the event that brought them.",
        "queue event",
    )
    unschedulable: Gauge = _gauge(
        "scheduler_unschedulable_pods",
        "Refused pods by the plugin or rule that refused them; a pod refused by several counts for each.",
        "plugin profile",
    )
    point_duration: Histogram = _histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "Time of one extension point: Filter (PreFilter included), Score (PreScore and NormalizeScore included), "
        "PostFilter, Permit (the wait), Bind (the request).",
        _POINT,
        "extension_point status profile",
    )
    plugin_evaluations: Counter = _counter(
        "scheduler_plugin_evaluation_total",
        "How often a plugin or rule was asked about a pod, at Filter (PreFilter included) and Score (PreScore "
        "included). Identical pods in a row may be asked about once.",
        "plugin extension_point profile",
    )
    preemption_victims: Histogram = _histogram(
        "scheduler_preemption_victims", "Pods chosen to go, by preemption.", exponential(1, 2, 7)
    )
    preemption_attempts: Counter = _counter("scheduler_preemption_attempts_total", "Preemptions that found a node.")
    permit_wait: Histogram = _histogram(
        "scheduler_permit_wait_duration_seconds",
        "Time that pods waited at Permit, by result: allowed, rejected.",
        _ATTEMPT,
        "result",
    )
    goroutines: Gauge = _gauge(
        "scheduler_goroutines", "Work under way beside the cycles, by what it does: binding.", "operation"
    )
    event_handling: Histogram = _histogram(
        "scheduler_event_handling_duration_seconds",
        "Time in which the core takes in one message, by the message; one of sixteen is timed.",
        _POINT,
        "event",
    )
    cache_size: Gauge = _gauge("scheduler_cache_size", "What the cache holds: nodes, pods, assumed_pods.", "type")
    rest_requests: Counter = _counter(
        "rest_client_requests_total",
        "Requests to the API server, by status code (<error> without an answer), method and host.",
        "code method host",
    )
    rest_duration: Histogram = _histogram(
        "rest_client_request_duration_seconds",
        "Time from a request to the headers of its answer, by method and host; watches left out.",
        _REST,
        "verb host",
    )
    work_depth: Gauge = _gauge("workqueue_depth", "What waits in a queue of requests.", "name")
    work_adds: Counter = _counter("workqueue_adds_total", "What came into a queue of requests.", "name")
    work_waited: Histogram = _histogram(
        "workqueue_queue_duration_seconds", "Time in the queue before the request was made.", _WORK, "name"
    )
    work_duration: Histogram = _histogram(
        "workqueue_work_duration_seconds", "Time that the request took.", _WORK, "name"
    )
    work_unfinished: Gauge = _gauge(
        "workqueue_unfinished_work_seconds", "Seconds for which the requests under way have been so, in all.", "name"
    )
    work_longest: Gauge = _gauge(
        "workqueue_longest_running_processor_seconds",
        "Seconds for which the request that is under way longest has been so.",
        "name",
    )
    work_retries: Counter = _counter(
        "workqueue_retries_total", "What came into a queue of requests again, since it failed.", "name"
    )
    policy_info: Gauge = _gauge("policyengine_policy_info", "1 for each policy that serves.", "policy hash")
    reloads: Counter = _counter(
        "policyengine_policy_reloads_total",
        "Policies handed to the running scheduler, by result: accepted, removed, rejected.",
        "result",
    )
    rule_evaluations: Counter = _counter(
        "policyengine_rule_evaluations_total",
        "How often a rule or plugin worked out its column of verdicts or scores, whole or patched.",
        "policy rule extension_point",
    )
    cache_hits: Counter = _counter(
        "policyengine_cache_hits_total",
        "How often a rule's or plugin's column was there already.",
        "policy rule extension_point",
    )
    candidate_info: Gauge = _gauge(
        "policyengine_candidate_info",
        "Each policy that is tried beside the one that serves: 1 while it is, 0 once it was suspended.",
        "policy hash mode profile",
    )
    candidate_compared: Counter = _counter(
        "policyengine_candidate_compared_total",
        "Decisions that a candidate and the serving policy were compared on, since either is what it is.",
        "policy profile",
    )
    divergence: Counter = _counter(
        "policyengine_divergence_total",
        "Of these decisions, those that differ, in what: `node` chosen (none included), `feasible` nodes.",
        "policy profile in",
    )
    divergence_by_rule: Counter = _counter(
        "policyengine_divergence_by_rule_total",
        "Compared decisions in which the rule or plugin makes a difference.",
        "policy profile rule",
    )
    candidate_decisions: Counter = _counter(
        "policyengine_candidate_decisions_total",
        "Decisions that a canary made, by result: scheduled, unschedulable.",
        "policy profile result",
    )
    candidates_suspended: Counter = _counter(
        "policyengine_candidates_suspended_total", "Candidates that were suspended here: they failed, or cost too much."
    )
    leader: Gauge = _gauge("policyengine_leader", "1 where this replica may bind, 0 where it stands by.")
    message_queue: Gauge = _gauge("policyengine_inbox_messages", "Messages that the core has not taken in yet.")
    watch_failing: Gauge = _gauge(
        "policyengine_watch_failing_seconds",
        "Seconds for which neither a list nor a watch has succeeded, by resource.",
        "resource",
    )
    not_served: Gauge = _gauge(
        "policyengine_not_served_pods",
        "Pods that have waited a minute and whose schedulerName nobody serves, by that name (the 20 with most pods).",
        "scheduler",
    )
    restorations: Counter = _counter(
        "policyengine_server_restorations_total",
        "How often the API server was found to have gone back to an older copy, or to be another cluster's.",
    )
    bindings_by_others: Counter = _counter(
        "policyengine_bindings_by_others_total",
        "Pods that another scheduler was seen to bind to nodes with pods of the scheduler names served here.",
    )
    given_way: Counter = _counter(
        "policyengine_pods_given_way_total",
        "Pods bound here that did not fit beside what another scheduler bound meanwhile, where bindings are verified.",
    )
    stalls: Counter = _counter(
        "policyengine_stalls_total",
        "Times that the scheduler stood still for a second or more over one message, by the message: a plugin waits.",
        "event",
    )
    extender_requests: Counter = _counter(
        "policyengine_extender_client_requests_total",
        "Requests to extenders, by the extender, its verb and the result: ok, error, ignored.",
        "extender verb result",
    )
    extender_duration: Histogram = _histogram(
        "policyengine_extender_client_duration_seconds",
        "Time of a request to an extender.",
        _ATTEMPT,
        "extender verb",
    )
    _before: list[Callable[[], None]] = field(default_factory=list)

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
