"""What is read off the running scheduler right before its metrics are shown."""

from __future__ import annotations

from collections import Counter

from policyengine.clock import Clock
from policyengine.cluster.pod_info import PodState
from policyengine.kube.scheduling import Scheduler
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics

QUEUES = {"active": "active", "backoff": "backoff", "unschedulable": "unschedulable", "gated": "gated", "held": "gated"}
"""A place of our queue -> kube-scheduler's word for it."""

NAMES = 20
"""Scheduler names that nobody serves, of which the pods are counted: whoever creates pods makes the names up."""


def read_before_scrape(metrics: SchedulerMetrics, scheduler: Scheduler, clock: Clock) -> None:
    """Have every gauge of the metrics read off this scheduler."""

    def read() -> None:
        _read_pods(metrics, scheduler)
        _read_policies(metrics, scheduler)
        _read_candidates(metrics, scheduler)
        _read_runner(metrics, scheduler, clock)

    def ended(name: str, waited: float, worked: float) -> None:
        metrics.work_waited.observe((name,), waited)
        metrics.work_duration.observe((name,), worked)

    for queue in scheduler.runner.writer.queues:
        for counts, _ in queue.depths:
            counts.observe = ended
    metrics.read = read


def _read_pods(metrics: SchedulerMetrics, scheduler: Scheduler) -> None:
    pending: Counter[str] = Counter(dict.fromkeys(QUEUES.values(), 0))
    for profile in scheduler.state.profiles:
        for place, count in scheduler.state.pending_counts(profile.scheduler_name).items():
            if place in QUEUES:
                pending[QUEUES[place]] += count
    metrics.pending.read(((queue,), float(count)) for queue, count in pending.items())
    pods = scheduler.state.view.pods
    assumed = (
        sum(1 for pod in pods.values() if pod.state is PodState.ASSUMED) if scheduler.state.bindings_under_way else 0
    )
    sizes = {"nodes": scheduler.state.view.nodes.n, "pods": len(pods), "assumed_pods": assumed}
    metrics.cache_size.read(((what,), float(size)) for what, size in sizes.items())


def _read_policies(metrics: SchedulerMetrics, scheduler: Scheduler) -> None:
    metrics.reloads.values[("rejected",)] = float(scheduler.reloader.rejected)
    metrics.policy_info.read(((one.name, one.policy_hash), 1.0) for one in scheduler.state.profiles)
    for family in (metrics.plugin_evaluations, metrics.rule_evaluations, metrics.cache_hits):
        family.values.clear()
    for profile, plugin, point, asked, computed in scheduler.state.usage():
        metrics.plugin_evaluations.add((plugin, point, profile.scheduler_name), asked)
        metrics.rule_evaluations.add((profile.name, plugin, point), computed)
        metrics.cache_hits.add((profile.name, plugin, point), max(0, asked - computed))


def _read_candidates(metrics: SchedulerMetrics, scheduler: Scheduler) -> None:
    rollouts = scheduler.state.rollouts
    metrics.candidates_suspended.values[()] = float(scheduler.reloader.suspended)
    metrics.candidate_info.read(
        ((one.profile.name, one.profile.policy_hash, one.settings.mode.value, name), float(one.is_tried))
        for name, one in rollouts.items()
    )
    for family in (
        metrics.candidate_compared,
        metrics.divergence,
        metrics.divergence_by_rule,
        metrics.candidate_decisions,
    ):
        family.values.clear()
    for name, one in rollouts.items():
        labels = (one.profile.name, name)
        metrics.candidate_compared.add(labels, one.compared)
        metrics.divergence.add((*labels, "node"), one.other_node)
        metrics.divergence.add((*labels, "feasible"), one.other_feasible)
        for rule, count in one.by_rule.items():
            metrics.divergence_by_rule.add((*labels, rule), count)
        metrics.candidate_decisions.add((*labels, "unschedulable"), one.refused)
        metrics.candidate_decisions.add((*labels, "scheduled"), one.decided - one.refused)


def _read_runner(metrics: SchedulerMetrics, scheduler: Scheduler, clock: Clock) -> None:
    runner, elector = scheduler.runner, scheduler.elector
    metrics.leader.read([((), float(elector is None or elector.holds()))])
    metrics.message_queue.read([((), float(len(runner.messages.waiting)))])
    metrics.goroutines.read([(("binding",), float(runner.writer.bindings))])
    if scheduler.notices is not None:
        most = scheduler.notices.not_served.most_common(NAMES)
        metrics.not_served.read(((name,), float(count)) for name, count in most)
    metrics.bindings_by_others.values[()] = float(sum(one.bindings for one in scheduler.state.neighbours.values()))
    metrics.restorations.values[()] = float(scheduler.history.generation)
    now = clock.monotonic()
    metrics.watch_failing.read(
        ((reflector.resource.plural,), 0.0 if reflector.failing_since is None else now - reflector.failing_since)
        for reflector in runner.informers.reflectors
    )
    for queue in runner.writer.queues:
        for counts, depth in queue.depths:
            if not counts.adds:
                continue
            labels, under_way = (counts.name,), [now - since for since in counts.running.values()]
            metrics.work_depth.values[labels] = float(depth)
            metrics.work_adds.values[labels] = float(counts.adds)
            metrics.work_retries.values[labels] = float(counts.retries)
            metrics.work_unfinished.values[labels] = sum(under_way)
            metrics.work_longest.values[labels] = max(under_way, default=0.0)
