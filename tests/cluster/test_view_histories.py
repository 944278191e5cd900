"""The view under random histories: events late, repeated, merged or out of order against a fresh view of the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView
from tests.builders import make_node, make_pod
from tests.cluster.consistency import decoded, validate_view
from tests.cluster.view_dump import dump_view

NODES = ("a", "b", "c")
PODS = ("p", "q", "r", "s")
LABELS = ("zone", "disk")

node_looks = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["2", "4000m", "bad"]),
        "gpu": st.integers(0, 2),
        "zone": st.sampled_from(["", "1", "2"]),
        "taint": st.sampled_from(["", "t", "u"]),
        "image": st.sampled_from(["", "x:1", "y:1"]),
        "cordoned": st.booleans(),
    }
)
pod_looks = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["", "100m", "1500m", "bad"]),
        "gpu": st.integers(0, 1),
        "port": st.sampled_from([0, 80, 81]),
        "node": st.sampled_from(["", *NODES, "nowhere"]),
        "nominated": st.sampled_from(["", *NODES]),
        "color": st.sampled_from(["", "red"]),
        "resized": st.sampled_from(["", "2"]),
    }
)
steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), node_looks, st.booleans()),
    st.tuples(st.just("node gone"), st.sampled_from(NODES)),
    st.tuples(st.just("pod"), st.sampled_from(PODS), pod_looks, st.booleans()),
    st.tuples(st.just("pod gone"), st.sampled_from(PODS)),
    st.tuples(st.just("pod finished"), st.sampled_from(PODS)),
    st.tuples(st.just("old word"), st.integers(0, 50)),
    st.tuples(st.just("assume"), st.sampled_from(PODS), st.sampled_from(NODES)),
    st.tuples(st.just("forget"), st.sampled_from(PODS)),
    st.tuples(st.just("confirm"), st.sampled_from(PODS)),
    st.tuples(st.just("what if"), st.sets(st.sampled_from(PODS)), st.sampled_from(PODS), st.sampled_from(NODES)),
)


def node_of(name: str, uid: str, version: int, look: dict) -> Node:
    builder = make_node(name).uid(uid).version(version).capacity(cpu=look["cpu"], pods=10)
    builder.capacity({"x/gpu": look["gpu"]}).unschedulable(look["cordoned"])
    if look["zone"]:
        builder.label("zone", look["zone"])
    if look["taint"]:
        builder.taint(look["taint"])
    if look["image"]:
        builder.image(look["image"], 5)
    return builder.build()


def pod_of(name: str, uid: str, version: int, look: dict) -> Pod:
    builder = make_pod(name).uid(uid).version(version).node(look["node"]).nominated(look["nominated"])
    if look["cpu"]:
        builder.req(cpu=look["cpu"])
    if look["gpu"]:
        builder.req({"x/gpu": look["gpu"]})
    if look["port"]:
        builder.host_port(look["port"])
    if look["color"]:
        builder.label("color", look["color"])
    if look["resized"]:
        builder.container_status(requests={"cpu": look["resized"]})
    return builder.build()


@dataclass
class Truth:
    """The server: the newest of everything, plus what the scheduler assumed, kept in the plainest way."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    looks: dict[str, dict] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    words: list[Node | Pod] = field(default_factory=list)
    clock: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def fresh_view(self) -> ClusterView:
        view = ClusterView()
        for pod in self.pods.values():
            view.add_or_update_pod(pod)
        for node in self.nodes.values():
            view.add_or_update_node(node)
        for name, node_name in self.assumed.items():
            uid = self.pods[name].metadata.uid
            if node_name not in self.nodes:  # assumed before its node went
                view.add_or_update_node(make_node(node_name).build())
                view.assume(uid, node_name)
                view.remove_node(node_name)
            else:
                view.assume(uid, node_name)
        return view


class ByColor:
    """Counts a pod in its namespace and, if it has one, in its colour."""

    def groups(self, pod: PodInfo) -> tuple[str, ...]:
        return (pod.namespace, *filter(None, [pod.labels.get("color")]))


class History:
    def __init__(self) -> None:
        self.truth = Truth()
        self.view = ClusterView()
        for key in LABELS:
            self.view.nodes.label_ids(key)
        self.view.nodes.derived.capacity("cpu")
        self.view.nodes.derived.ids("condition", "Ready")
        self.grouping = ByColor()
        self.view.usage_counts(self.grouping)
        self.view.nodes.pod_table.current().numbers("restarts", lambda pod: pod.restarts)

    def take(self, step: tuple) -> None:
        action, *details = step
        getattr(self, "on_" + action.replace(" ", "_"))(*details)

    def on_node(self, name: str, look: dict, anew: bool) -> None:
        truth, old = self.truth, self.truth.nodes.get(name)
        version = truth.tick()
        uid = f"{name}-{version}" if anew or old is None else old.metadata.uid
        truth.nodes[name] = node_of(name, uid, version, look)
        truth.words.append(truth.nodes[name])
        self.view.add_or_update_node(truth.nodes[name])

    def on_node_gone(self, name: str) -> None:
        self.truth.nodes.pop(name, None)
        self.view.remove_node(name)

    def on_pod(self, name: str, look: dict, anew: bool) -> None:
        truth, old = self.truth, self.truth.pods.get(name)
        version = truth.tick()
        if old is None or anew:
            uid = f"{name}-{version}"
            truth.assumed.pop(name, None)
        else:
            uid = old.metadata.uid
            if old.spec.node_name:  # the server never moves or unbinds a pod
                look = look | {"node": old.spec.node_name}
        if look["node"]:
            truth.assumed.pop(name, None)
        truth.looks[name] = look
        truth.pods[name] = pod_of(name, uid, version, look)
        truth.words.append(truth.pods[name])
        self.view.add_or_update_pod(truth.pods[name])

    def on_pod_gone(self, name: str) -> None:
        self.truth.assumed.pop(name, None)
        pod = self.truth.pods.pop(name, None)
        self.view.remove_pod(pod.metadata.uid if pod else "never")

    def on_pod_finished(self, name: str) -> None:
        pod = self.truth.pods.pop(name, None)
        self.truth.assumed.pop(name, None)
        if pod is not None:
            look, uid = self.truth.looks[name], pod.metadata.uid
            finished = make_pod(name).uid(uid).version(self.truth.tick()).node(look["node"]).phase("Failed")
            assert self.view.add_or_update_pod(finished.build()).new is None

    def on_old_word(self, index: int) -> None:
        """A late or repeated event. After a deletion it is the watch that must not tell it."""
        if not self.truth.words:
            return
        word = self.truth.words[index % len(self.truth.words)]
        before = self.view.generation
        if isinstance(word, Pod) and word.metadata.name in self.truth.pods:
            self.view.add_or_update_pod(word)
        elif isinstance(word, Node) and word.metadata.name in self.truth.nodes:
            self.view.add_or_update_node(word)
        assert self.view.generation == before

    def on_assume(self, name: str, node_name: str) -> None:
        pod = self.truth.pods.get(name)
        if pod and node_name in self.truth.nodes and not pod.spec.node_name and name not in self.truth.assumed:
            self.truth.assumed[name] = node_name
            self.view.assume(pod.metadata.uid, node_name)

    def on_forget(self, name: str) -> None:
        pod = self.truth.pods.get(name)
        assumed = self.truth.assumed.pop(name, None)
        events = self.view.forget(pod.metadata.uid if pod else "never")
        assert bool(events) == bool(assumed)

    def on_confirm(self, name: str) -> None:
        if name in self.truth.assumed:
            node_name = self.truth.assumed[name]
            self.on_pod(name, self.truth.looks[name] | {"node": node_name}, False)

    def on_what_if(self, gone: set[str], come: str, node_name: str) -> None:
        view, before = self.view, dump_view(self.view)
        uids = [self.truth.pods[name].metadata.uid for name in sorted(gone) if name in self.truth.pods]
        pod = self.truth.pods.get(come)
        info = view.pods.get(pod.metadata.uid) if pod else None
        add = []
        if info and info.state is PodState.PENDING and node_name in self.truth.nodes and come not in gone:
            add = [(info.uid, node_name)]
        with view.hypothetically(remove=uids, add=add) as snapshot:
            validate_view(view)
            assert not set(uids) & set(snapshot.pods)
        assert dump_view(view) == before


def face(table: NodeTable) -> tuple[list[object], list[object]]:
    """All a reader can see of each row: of its Node object, and of what stands on it."""

    def amounts(column: Callable[[str], NDArray[np.int64]], row: int) -> dict[str, int]:
        return {name: int(column(name)[row]) for name in table.resources if column(name)[row]}

    labels = [decoded(table, "label", key) for key in LABELS]
    nodes = [
        (
            table.names[row],
            id(table.objects[row]),
            [column[row] for column in labels],
            table.derived.encoded("taints", "").value(row),
            amounts(table.allocatable, row),
            int(table.derived.capacity("cpu")[row]),
        )
        for row in range(table.n)
    ]
    pods = [
        (
            table.names[row],
            {uid: id(info) for uid, info in table.pods_on(row).items()},
            amounts(table.requested, row),
        )
        for row in range(table.n)
    ]
    return nodes, pods


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=12, max_size=40))
def test_the_view_equals_a_fresh_one_and_its_journals_name_every_change(history_steps):
    history = History()
    table = history.view.nodes
    for step in history_steps:
        before = face(table)
        positions = table.node_journal.position, table.pod_journal.position
        history.take(step)
        validate_view(history.view)
        assert dump_view(history.view) == dump_view(history.truth.fresh_view())
        journals = table.node_journal, table.pod_journal
        for old, new, journal, position in zip(before, face(table), journals, positions, strict=True):
            named = journal.since(position)
            changed = {row for row, seen in enumerate(new) if row >= len(old) or old[row] != seen}
            assert named is not None
            assert changed <= set(named.tolist())
