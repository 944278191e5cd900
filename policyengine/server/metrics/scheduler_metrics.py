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
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]


class Family:
    """A metric: its name, its help text, the names of its labels, and a value for each combination of label values."""

    kind = ""
    shown_as: type[CounterMetricFamily] | type[GaugeMetricFamily]

    def __init__(self, name: str, help: str, buckets: tuple[float, ...] = ()) -> None:
        """`name`: with its labels, as in `scheduler_queue_incoming_pods_total{queue,event}`."""
        self.name, *labels = name.rstrip("}").split("{")
        self.help = help
        self.labels = tuple(labels[0].split(",")) if labels else ()
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

    def __init__(self, name: str, help: str) -> None:
        super().__init__(name, help)
        if not self.labels:
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

    def __init__(self, name: str, help: str, buckets: tuple[float, ...]) -> None:
        super().__init__(name, help, buckets)
        self._cells: dict[Labels, list[float]] = {}
        """Label values -> values in each bucket, then above all bounds, then the sum of the values."""
        if not self.labels:
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


class SchedulerMetrics:
    """The metrics of one scheduler, in the order in which they are shown."""

    def __init__(self) -> None:
        self.schedule_attempts = Counter(
            "scheduler_schedule_attempts_total{result,profile}",
            "Attempts to schedule pods by result: scheduled, unschedulable (no node fits), error.",
        )
        self.attempt_duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds{result,profile}",
            "Time of an attempt, its binding included, by result.",
            _ATTEMPT,
        )
        self.algorithm_duration = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Time from PreFilter to a chosen node.", _ATTEMPT
        )
        self.sli_duration = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds{attempts}",
            "Time from a pod's first entry into the active queue to its binding, by attempts (15 and more are 15+).",
            exponential(0.01, 2, 20),
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts", "Attempts that a bound pod took.", exponential(1, 2, 5)
        )
        self.after_flush = Counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Bound pods that were tried again only because they had waited five minutes: an event that should have "
            "woken them may be missing.",
        )
        self.pending = Gauge(
            "scheduler_pending_pods{queue}",
            "Pods that wait, by queue: active, backoff, unschedulable, gated (those held for their gang included).",
        )
        self.incoming = Counter(
            "scheduler_queue_incoming_pods_total{queue,event}",
            "Pods that entered a queue, by the queue and the event that brought them.",
        )
        self.unschedulable = Gauge(
            "scheduler_unschedulable_pods{plugin,profile}",
            "Refused pods by the plugin or rule that refused them; a pod refused by several counts for each.",
        )
        self.point_duration = Histogram(
            "scheduler_framework_extension_point_duration_seconds{extension_point,status,profile}",
            "Time of one extension point: Filter (PreFilter included), Score (PreScore and NormalizeScore included), "
            "PostFilter, Permit (the wait), Bind (the request).",
            _POINT,
        )
        self.plugin_evaluations = Counter(
            "scheduler_plugin_evaluation_total{plugin,extension_point,profile}",
            "How often a plugin or rule was asked about a pod, at Filter (PreFilter included) and Score (PreScore "
            "included). Identical pods in a row may be asked about once.",
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims", "Pods chosen to go, by preemption.", exponential(1, 2, 7)
        )
        self.preemption_attempts = Counter("scheduler_preemption_attempts_total", "Preemptions that found a node.")
        self.permit_wait = Histogram(
            "scheduler_permit_wait_duration_seconds{result}",
            "Time that pods waited at Permit, by result: allowed, rejected.",
            _ATTEMPT,
        )
        self.goroutines = Gauge(
            "scheduler_goroutines{operation}", "Work under way beside the cycles, by what it does: binding."
        )
        self.event_handling = Histogram(
            "scheduler_event_handling_duration_seconds{event}",
            "Time in which the core takes in one message, by the message; one of sixteen is timed.",
            _POINT,
        )
        self.cache_size = Gauge("scheduler_cache_size{type}", "What the cache holds: nodes, pods, assumed_pods.")
        self.rest_requests = Counter(
            "rest_client_requests_total{code,method,host}",
            "Requests to the API server, by status code (<error> without an answer), method and host.",
        )
        self.rest_duration = Histogram(
            "rest_client_request_duration_seconds{verb,host}",
            "Time from a request to the headers of its answer, by method and host; watches left out.",
            _REST,
        )
        self.work_depth = Gauge("workqueue_depth{name}", "What waits in a queue of requests.")
        self.work_adds = Counter("workqueue_adds_total{name}", "What came into a queue of requests.")
        self.work_waited = Histogram(
            "workqueue_queue_duration_seconds{name}", "Time in the queue before the request was made.", _WORK
        )
        self.work_duration = Histogram("workqueue_work_duration_seconds{name}", "Time that the request took.", _WORK)
        self.work_unfinished = Gauge(
            "workqueue_unfinished_work_seconds{name}", "Seconds for which the requests under way have been so, in all."
        )
        self.work_longest = Gauge(
            "workqueue_longest_running_processor_seconds{name}",
            "Seconds for which the request that is under way longest has been so.",
        )
        self.work_retries = Counter(
            "workqueue_retries_total{name}", "What came into a queue of requests again, since it failed."
        )
        self.policy_info = Gauge("policyengine_policy_info{policy,hash}", "1 for each policy that serves.")
        self.reloads = Counter(
            "policyengine_policy_reloads_total{result}",
            "Policies handed to the running scheduler, by result: accepted, removed, rejected.",
        )
        self.rule_evaluations = Counter(
            "policyengine_rule_evaluations_total{policy,rule,extension_point}",
            "How often a rule or plugin worked out its column of verdicts or scores, whole or patched.",
        )
        self.cache_hits = Counter(
            "policyengine_cache_hits_total{policy,rule,extension_point}",
            "How often a rule's or plugin's column was there already.",
        )
        self.candidate_info = Gauge(
            "policyengine_candidate_info{policy,hash,mode,profile}",
            "Each policy that is tried beside the one that serves: 1 while it is, 0 once it was suspended.",
        )
        self.candidate_compared = Counter(
            "policyengine_candidate_compared_total{policy,profile}",
            "Decisions that a candidate and the serving policy were compared on, since either is what it is.",
        )
        self.divergence = Counter(
            "policyengine_divergence_total{policy,profile,in}",
            "Of these decisions, those that differ, in what: `node` chosen (none included), `feasible` nodes.",
        )
        self.divergence_by_rule = Counter(
            "policyengine_divergence_by_rule_total{policy,profile,rule}",
            "Compared decisions in which the rule or plugin makes a difference.",
        )
        self.candidate_decisions = Counter(
            "policyengine_candidate_decisions_total{policy,profile,result}",
            "Decisions that a canary made, by result: scheduled, unschedulable.",
        )
        self.candidates_suspended = Counter(
            "policyengine_candidates_suspended_total",
            "Candidates that were suspended here: they failed, or cost too much.",
        )
        self.leader = Gauge("policyengine_leader", "1 where this replica may bind, 0 where it stands by.")
        self.message_queue = Gauge("policyengine_inbox_messages", "Messages that the core has not taken in yet.")
        self.watch_failing = Gauge(
            "policyengine_watch_failing_seconds{resource}",
            "Seconds for which neither a list nor a watch has succeeded, by resource.",
        )
        self.not_served = Gauge(
            "policyengine_not_served_pods{scheduler}",
            "Pods that have waited a minute and whose schedulerName nobody serves, by that name (the 20 with most "
            "pods).",
        )
        self.restorations = Counter(
            "policyengine_server_restorations_total",
            "How often the API server was found to have gone back to an older copy, or to be another cluster's.",
        )
        self.bindings_by_others = Counter(
            "policyengine_bindings_by_others_total",
            "Pods that another scheduler was seen to bind to nodes with pods of the scheduler names served here.",
        )
        self.given_way = Counter(
            "policyengine_pods_given_way_total",
            "Pods bound here that did not fit beside what another scheduler bound meanwhile, where bindings are "
            "verified.",
        )
        self.stalls = Counter(
            "policyengine_stalls_total{event}",
            "Times that the scheduler stood still for a second or more over one message, by the message: a plugin "
            "waits.",
        )
        self.extender_requests = Counter(
            "policyengine_extender_client_requests_total{extender,verb,result}",
            "Requests to extenders, by the extender, its verb and the result: ok, error, ignored.",
        )
        self.extender_duration = Histogram(
            "policyengine_extender_client_duration_seconds{extender,verb}",
            "Time of a request to an extender.",
            _ATTEMPT,
        )
        self.read: Callable[[], None] = lambda: None
        """Is called right before the metrics are shown."""

    def families(self) -> list[Family]:
        """Every metric, in the order of the table."""
        return [value for value in vars(self).values() if isinstance(value, Family)]

    def collect(self) -> Iterator[Metric]:
        """What `prometheus_client.generate_latest` wants of a registry."""
        self.read()
        for family in self.families():
            yield family.collect()
