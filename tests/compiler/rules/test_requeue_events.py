"""Whenever an event turns a rejection by a rule into an acceptance, the rule had registered for it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import decode
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import PodGroup
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import ClusterEvent, QueueingHint
from policyengine.framework.plugin import FilterPlugin
from policyengine.policy_compiler import compile_policy
from tests.builders import make_node, make_pod

CONDITIONS = (
    'node.labels[?"tier"].orValue("") == "gold"',
    'node.annotations[?"tier"].orValue("") == "gold"',
    "node.free.cpu >= pod.requests.cpu",
    "node.allocatable.cpu >= 4",
    "node.used.cpu >= 1",
    "node.podCount >= 2",
    "node.podCount == 0",
    "node.taints.size() == 0",
    "!node.unschedulable",
    'pod.labels[?"tier"].orValue("") == "gold"',
    'pod.annotations[?"tier"].orValue("") == "gold"',
    "pod.requests.cpu < 2",
    "podGroup.hasValue()",
    "podGroup.?minMember.orValue(9) <= 2",
    "cluster.nodeCount >= 2",
    "node.pods.size() >= 1",
    'node.pods.exists(p, p.labels[?"tier"].orValue("") == "gold")',
    'node.pods.all(p, p.labels[?"tier"].orValue("") != "gold")',
    'node.domain("zone").pods.size() >= 2',
    'node.domain("zone").nodes.size() >= 2',
    'pods.filter(p, p.labels[?"tier"].orValue("") == "gold").size() >= 1',
    "nodes.all(n, n.podCount <= 1)",
    "nodes.map(n, n.free.cpu).sum() >= 6",
)
TIERS = st.sampled_from(["", "gold", "tin"])


@dataclass(frozen=True)
class Change:
    """Something that happens: what of, to which, and what it is then."""

    what: str
    which: int
    tier: str
    cpu: int


changes = st.builds(
    Change,
    st.sampled_from(["node", "node", "node gone", "placed", "placed gone", "two here", "own", "group", "group gone"]),
    st.integers(0, 2),
    TIERS,
    st.integers(1, 5),
)


class World:
    """A view with one pod that waits, `own`; `apply` answers with the events."""

    def __init__(self) -> None:
        self.view = ClusterView()
        self.view.now = 1_767_225_600.0
        self._version = 0
        self.apply(Change("own", 0, "", 2))

    def apply(self, change: Change) -> list[tuple[ClusterEvent, object, object]]:
        self._version += 1
        found = getattr(self, f"_{change.what.replace(' ', '_')}")(change)
        return list(found)

    def _node(self, change: Change):
        name = f"n{change.which}"
        builder = make_node(name).uid(name).version(self._version).capacity(cpu=str(change.cpu), memory="8Gi", pods="9")
        builder.label("zone", "z1").unschedulable(change.tier == "tin")
        if change.tier:
            builder.label("tier", change.tier).annotation("tier", change.tier)
        if change.tier == "tin":
            builder.taint("tin")
        row = self.view.nodes.row_of.get(name)
        old, new = None if row is None else self.view.nodes.objects[row], builder.build()
        return [(event, old, new) for event in self.view.add_or_update_node(new)]

    def _node_gone(self, change: Change):
        return [(event, None, None) for event in self.view.remove_node(f"n{change.which}")]

    def _placed(self, change: Change):
        pod = make_pod(f"p{change.which}").req(cpu=f"{change.cpu * 300}m").node(f"n{change.which}")
        return self._observe(pod.label("tier", change.tier).version(self._version))

    def _placed_gone(self, change: Change):
        gone = self.view.remove_pod(f"p{change.which}")
        return [(event, gone.old, None) for event in gone.events]

    def _two_here(self, change: Change):
        pod = make_pod("second").req(cpu="100m").node(f"n{change.which}")
        return self._observe(pod.version(self._version))

    def _own(self, change: Change):
        pod = make_pod("own").req(cpu=str(change.cpu)).label("scheduling.x-k8s.io/pod-group", "crew")
        if change.tier:
            pod.label("tier", change.tier).annotation("tier", change.tier)
        return self._observe(pod.version(self._version))

    def _observe(self, pod):
        change = self.view.add_or_update_pod(pod.build())
        return [(event, change.old, change.new) for event in change.events]

    def _group(self, change: Change):
        metadata = {"name": "crew", "namespace": "default", "uid": "g", "resourceVersion": str(self._version)}
        group = decode(PodGroup, {"metadata": metadata, "spec": {"minMember": change.cpu}})
        events = self.view.set_object("PodGroup", group)
        self.view.regroup("PodGroup", "default/crew")
        return [(event, None, group) for event in events]

    def _group_gone(self, change: Change):
        events = self.view.remove_object("PodGroup", "default/crew")
        self.view.regroup("PodGroup", "default/crew")
        return [(event, None, None) for event in events]


def wakes(rule: FilterPlugin, pod: object, event: ClusterEvent, old: object, new: object) -> bool:
    return any(
        one.event.matches(event) and (one.hint is None or one.hint(pod, old, new) is QueueingHint.QUEUE)
        for one in rule.events_to_register()
    )


def refused_in(view: ClusterView) -> set[str]:
    """The conditions that refuse the pod everywhere; where there is no node a rule has refused nothing."""
    return {one for one, (_, evaluator) in RULES.items() if view.nodes.n and not accepts(evaluator, view)}


def accepts(evaluator: Evaluator, view: ClusterView) -> bool:
    """Whether the rule lets the pod pass somewhere."""
    return len(evaluator.filter(view.pods["own"], view.snapshot()).feasible) > 0


def rule_of(condition: str) -> tuple[FilterPlugin, Evaluator]:
    profile = compile_policy(f'policy "t" {{ base none filter "rule" {{ require {condition} }} }}')
    return profile.filters[0], Evaluator(profile)


RULES = {condition: rule_of(condition) for condition in CONDITIONS}


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, min_size=4, max_size=14))
def test_an_event_that_cures_a_rejection_was_registered(history):
    world = World()
    for change in history:
        before = refused_in(world.view)
        refused = world.view.pods["own"]
        events = world.apply(change)
        for condition in before:
            rule, evaluator = RULES[condition]
            if accepts(evaluator, world.view):
                assert any(wakes(rule, refused, *event) for event in events), f"{condition}: {change} {events}"


def test_every_condition_is_cured_by_something():
    """The property above says something of each of them."""
    world, cured = World(), set()
    tour = [Change("node", 0, "tin", 1), Change("group", 0, "", 5), Change("placed", 0, "tin", 1)]
    tour += [Change("group", 0, "", 2), Change("own", 0, "gold", 1), Change("node", 0, "gold", 5)]
    tour += [Change("node", 1, "gold", 5), Change("placed", 1, "gold", 5), Change("placed", 0, "gold", 5)]
    tour += [Change("placed", 2, "", 1), Change("node", 2, "", 5), Change("two here", 1, "", 1)]
    tour += [Change("placed gone", 1, "", 1), Change("placed gone", 0, "", 1), Change("own", 0, "", 5)]
    tour += [Change("node gone", 0, "", 1), Change("node gone", 1, "", 1), Change("node gone", 2, "", 1)]
    for change in tour:
        before = refused_in(world.view)
        world.apply(change)
        cured |= {condition for condition in before if accepts(RULES[condition][1], world.view)}
    assert set(CONDITIONS) - cured == set()
