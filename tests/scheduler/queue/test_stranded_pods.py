"""Nobody waits for room that is there: after whatever happens, the pods that still wait are those that a fresh
evaluator refuses on every node. Bindings take their time, and fail; victims have their grace.

Where pods have priorities, and each node is judged alone, they could not have had others evicted either. Elsewhere they
might: what evictions would do to a filter that did not refuse a pod wakes nobody, with kube-scheduler neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    Message,
    NodeDeleted,
    NodeObserved,
    PodDeleted,
    PodObserved,
)
from policyengine.trials.trial import Trial
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
HEAD = 'policy "p" { scheduler "default-scheduler"\n'
PROFILES = {
    "kube-scheduler's": default_profile(),
    "few pods a node": compile_policy(
        HEAD
        + 'filter "few" { require node.podCount < 3 }'
        + ' score "full" weight 5 = 100 * ratio(node.used.cpu, node.allocatable.cpu) }'
    ),
    "half full, labels": compile_policy(
        HEAD + 'filter "half" { require node.used.cpu + pod.requests.cpu <= node.allocatable.cpu / 2 }'
        ' filter "kind" when "kind" in pod.labels { require node.labels[?"kind"].orValue("") == pod.labels["kind"] } }'
    ),
    "at least one other": compile_policy(
        HEAD + 'filter "after" when "after" in pod.labels { require node.podCount > 0 } }'
    ),
    "one zone's pods": compile_policy(
        HEAD + 'filter "zone" { require node.domain("topology.kubernetes.io/zone").pods.size() < 6 } }'
    ),
    "fair": compile_policy(HEAD + "queue { fair by pod.namespace } }"),
    "by size": compile_policy(HEAD + "queue { order by pod.requests.cpu desc } }"),
    "never more than asked": compile_policy(HEAD + 'quota "q" when pod.namespace == "a" { limit: {cpu: 6} } }'),
}
WITH_EVICTIONS = ("kube-scheduler's", "few pods a node", "fair", "by size")
OPERATIONS = 60


def some_node(random: Random, name: str) -> NodeBuilder:
    built = make_node(name).capacity(cpu=str(random.randint(1, 6)), memory="8Gi", pods=str(random.randint(2, 8)))
    built.label(HOST, name).label(ZONE, random.choice("ab"))
    if random.random() < 0.3:
        built.label("kind", random.choice("xy"))
    if random.random() < 0.2:
        built.taint("t")
    return built.unschedulable(random.random() < 0.1)


def some_pod(random: Random, name: str, simple: bool) -> PodBuilder:
    built = make_pod(name, random.choice("ab")).req(cpu=random.choice(("250m", "500m", "1", "2", "3")))
    built.label("app", random.choice("mn"))
    chance = random.random() * (0.3 if simple else 1.0)
    if chance < 0.1:
        built.label("kind", random.choice("xy"))
    elif chance < 0.2:
        built.toleration("t")
    elif chance < 0.3:
        built.node_selector({ZONE: "a"})
    elif chance < 0.4:
        built.host_port(80)
    elif chance < 0.6:
        built.spread(ZONE, {"app": "m"})
    elif chance < 0.75:
        built.pod_anti_affinity(HOST, {"app": "n"})
    elif chance < 0.85:
        built.label("after", "yes")
    if simple:
        built.priority(random.choice((0, 0, 5, 10)), random.choice((None, None, "Never")))
    return built


class World(Trial):
    """Its bindings are answered at once, later, or refused."""

    def __init__(self, random: Random, profile: Profile) -> None:
        self.under_way: list[Bind] = []
        self._random = random
        super().__init__([profile], now=1_767_600_000.0, victims_linger=random.random() < 0.5)

    def _bind(self, asked: Bind) -> Sequence[Message]:
        chance = self._random.random()
        if chance < 0.2:
            return [BindFailed(asked.uid, BindFailure.REFUSED, "no")]
        if chance < 0.5:
            self.under_way.append(asked)
            return ()
        return super()._bind(asked)

    def answer(self) -> None:
        """What is under way arrives, or not."""
        under_way, self.under_way = self.under_way, []
        for asked in under_way:
            for message in self._bind(asked):
                self._send(message)


def some_changes(random: Random, trial: World, simple: bool) -> Iterator[Message]:
    """What somebody does next."""
    pods, nodes = sorted(trial.cluster.pods), sorted(trial.state.view.nodes.names)
    for uid in pods:
        pod = trial.cluster.pods[uid]
        if pod.metadata.deletion_timestamp and random.random() < 0.5:
            yield PodDeleted(pod.metadata.namespace, pod.metadata.name, uid)
    pods, chance = sorted(trial.cluster.pods), random.random()
    if chance < 0.45:
        for i in range(random.choice((1, 1, 1, 6))):
            yield PodObserved(some_pod(random, f"p{trial.now:.1f}-{i}", simple).build())
    elif chance < 0.85 and pods:
        gone = trial.cluster.pods[random.choice(pods)]
        yield PodDeleted(gone.metadata.namespace, gone.metadata.name, gone.metadata.uid)
    elif chance < 0.95 or not nodes:
        yield NodeObserved(some_node(random, f"n{random.randrange(5)}").build())
    else:
        name = random.choice(nodes)
        for uid in pods:
            pod = trial.cluster.pods[uid]
            if pod.spec.node_name == name:
                yield PodDeleted(pod.metadata.namespace, pod.metadata.name, uid)
        yield NodeDeleted(name)


def stranded(trial: Trial, profile: Profile) -> list[str]:
    """The pods that wait though they need not."""
    view, evaluator, found = trial.state.view, Evaluator(profile), []
    for uid, pod in sorted(view.pods.items()):
        if trial.state.place(uid) != "unschedulable":
            continue  # it has a node, or is tried after its backoff whatever happens
        diagnosis = filter_with_nominated(evaluator, view, pod)
        if len(diagnosis.feasible):
            found.append(f"{pod.name} fits on {[view.nodes.names[row] for row in diagnosis.feasible]}")
        elif not view.nominated:
            results = (plugin.post_filter(pod, diagnosis, evaluator, view) for plugin in profile.post_filters)
            found += [f"{pod.name} could have {one.victims} evicted" for one in results if one.status.is_success]
    return found


@pytest.mark.parametrize(
    ("name", "simple"), [*((name, False) for name in PROFILES), *((name, True) for name in WITH_EVICTIONS)]
)
def test_who_waits_is_refused_everywhere(name: str, simple: bool) -> None:
    for seed in range(6):
        random, profile = Random(f"{name} {seed}"), PROFILES[name]
        trial = World(random, profile)
        trial.see(*(NodeObserved(some_node(random, f"n{i}").build()) for i in range(4)))
        for step in range(OPERATIONS):
            trial.advance(random.choice((0.5, 3.0, 20.0)))
            for message in some_changes(random, trial, simple):
                trial.see(message)
            if random.random() < 0.5:
                trial.answer()
            trial.settle()
            if not trial.under_way:  # a pod is told of another that is bound, not of one that may be
                assert stranded(trial, profile) == [], f"seed {seed}, step {step}"
