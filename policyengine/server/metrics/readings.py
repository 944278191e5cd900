"""What is read off the running scheduler right before its metrics are shown."""

from __future__ import annotations

from collections import Counter

from policyengine.clock import Clock
from policyengine.cluster.pod_info import PodState
from policyengine.kube.scheduling import Scheduler
from policyengine.server.metrics.registry import Registry

QUEUES = {"active": "active", "backoff": "backoff", "unschedulable": "unschedulable", "gated": "gated", "held": "gated"}
"""A place of our queue -> kube-scheduler's word for it."""


def read_before_scrape(registry: Registry, scheduler: Scheduler, clock: Clock) -> None:
    """Have every gauge of the registry read off this scheduler."""

    def read() -> None:
        _read_queues(registry, scheduler)
        _read_policies(registry, scheduler)
        _read_candidates(registry, scheduler)
        _read_cache(registry, scheduler)
        _read_runner(registry, scheduler, clock)

    registry.before_scrape(read)


def _read_queues(registry: Registry, scheduler: Scheduler) -> None:
    pending: Counter[str] = Counter(dict.fromkeys(QUEUES.values(), 0))
    for profile in scheduler.state.profiles:
        for place, count in scheduler.state.pending_counts(profile.scheduler_name).items():
            if place in QUEUES:
                pending[QUEUES[place]] += count
    registry.pending.read(((queue,), float(count)) for queue, count in pending.items())


def _read_policies(registry: Registry, scheduler: Scheduler) -> None:
    registry.reloads.values[("rejected",)] = float(scheduler.reloader.rejected)
    registry.policy_info.read(((one.name, one.policy_hash), 1.0) for one in scheduler.state.profiles)
    for family in (registry.plugin_evaluations, registry.rule_evaluations, registry.cache_hits):
        family.values.clear()
    for profile, plugin, point, asked, computed in scheduler.state.usage():
        registry.plugin_evaluations.add((plugin, point, profile.scheduler_name), asked)
        registry.rule_evaluations.add((profile.name, plugin, point), computed)
        registry.cache_hits.add((profile.name, plugin, point), max(0, asked - computed))


def _read_candidates(registry: Registry, scheduler: Scheduler) -> None:
    rollouts = scheduler.state.rollouts
    registry.candidates_suspended.values[()] = float(scheduler.reloader.suspended)
    registry.candidate_info.read(
        ((one.profile.name, one.profile.policy_hash, one.settings.mode.value, name), float(one.is_tried))
        for name, one in rollouts.items()
    )
    for family in (
        registry.candidate_compared,
        registry.divergence,
        registry.divergence_by_rule,
        registry.candidate_decisions,
    ):
        family.values.clear()
    for name, one in rollouts.items():
        labels = (one.profile.name, name)
        registry.candidate_compared.add(labels, one.compared)
        registry.divergence.add((*labels, "node"), one.other_node)
        registry.divergence.add((*labels, "feasible"), one.other_feasible)
        for rule, count in one.by_rule.items():
            registry.divergence_by_rule.add((*labels, rule), count)
        registry.candidate_decisions.add((*labels, "unschedulable"), one.refused)
        registry.candidate_decisions.add((*labels, "scheduled"), one.decided - one.refused)


def _read_cache(registry: Registry, scheduler: Scheduler) -> None:
    pods = scheduler.state.view.pods
    assumed = (
        sum(1 for pod in pods.values() if pod.state is PodState.ASSUMED) if scheduler.state.bindings_under_way else 0
    )
    registry.cache_size.read(
        [
            (("nodes",), float(scheduler.state.view.nodes.n)),
            (("pods",), float(len(pods))),
            (("assumed_pods",), float(assumed)),
        ]
    )


def _read_runner(registry: Registry, scheduler: Scheduler, clock: Clock) -> None:
    runner, elector = scheduler.runner, scheduler.elector
    registry.leader.read([((), float(elector is None or elector.holds()))])
    registry.message_queue.read([((), float(runner.backlog))])
    registry.goroutines.read([(("binding",), float(runner.bindings_outstanding))])
    now = clock.monotonic()
    registry.watch_failing.read(
        ((reflector.resource.plural,), 0.0 if reflector.failing_since is None else now - reflector.failing_since)
        for reflector in runner.reflectors
    )
