"""Measures what an operation costs over every node: the table that lint's estimates are made of.

An operation's cost is the growth of a filter's time with the number of its copies; what comes along with a copy (the
sum of a lookup, say) is taken off. Copies differ in a constant, so that none is shared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from benchmarks.decisions import nodes_of, pods_of
from benchmarks.workloads import Workload, mixed, peer_node
from policyengine.catalogue import compile_text
from policyengine.cluster.objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.snapshot import Snapshot
from policyengine.cluster.view import ClusterView
from policyengine.framework.plugin import FilterPlugin
from policyengine.language.lint.cost import NODES

FEW, MANY = 2, 8
PODS = 4
"""How many pods stand on each node."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A condition with so many copies of an operation, and the other operations that each copy brings."""

    name: str
    condition: Callable[[int], str]
    beside: tuple[str, ...] = ()
    """Names of operations measured before."""


def _joined(text: str, sign: str) -> Callable[[int], str]:
    """Copies of a text with `{n}` in it, joined by an operator."""
    return lambda count: f" {sign} ".join(text.format(n=number) for number in range(1, count + 1))


def _nested(before: str, core: str, after: str, least: str) -> Callable[[int], str]:
    def condition(count: int) -> str:
        return before * count + core + "".join(after.format(n=1000 + number) for number in range(count)) + least

    return condition


_CPU = "ratio(node.used.cpu, node.allocatable.cpu)"
OPERATIONS = (
    Operation("add", lambda count: "node.podCount" + "".join(f" + {n}" for n in range(1, count + 1)) + " >= 5"),
    Operation(
        "multiply",
        lambda count: "double(node.podCount)" + "".join(f" * 1.0{n}" for n in range(1, count + 1)) + " >= 5.0",
    ),
    Operation(
        "divide",
        lambda count: "double(node.podCount)" + "".join(f" / 1.0{n}" for n in range(1, count + 1)) + " >= 5.0",
    ),
    Operation("logic", lambda count: " || ".join(f"(a{n} && b{n})" for n in range(count)), ()),
    Operation("compare", _joined("node.podCount < {n}", "||"), ("logic",)),
    Operation("choose", lambda count: _joined("(a0 ? {n} : node.podCount)", "+")(count) + " >= 5", ("add",)),
    Operation("bound", _nested("clamp(", "node.podCount", ", 0, {n})", " >= 5")),
    Operation("root", _nested("sqrt(", "double(node.podCount)", " + 1.0)", " >= 5.0"), ("add",)),
    Operation("text", _joined('node.zone == "a{n}"', "||"), ("logic",)),
    Operation("lookup", _joined('node.labels[?"k{n}"].orValue("") == "x"', "||"), ("text", "logic", "logic")),
    Operation("convert", lambda count: _joined('toInt(node.labels[?"k{n}"]).orValue({n})', "+")(count) + " >= 5",
              ("lookup", "logic", "add")),
    Operation("matches", _joined('node.zone.matches("^a{n}$")', "||"), ("logic",)),
    Operation("curve", lambda count: _joined(f"betaCdf({_CPU}, 2.0, 1.{{n}})", "+")(count) + " >= 0.5",
              ("divide", "add")),
    Operation("pods", lambda count: _joined("node.pods.filter(p, p.priority < {n}).size()", "+")(count) + " >= 5",
              ("add",)),
    Operation("draw", lambda count: _joined('random("s{n}")', "+")(count) + " >= 0.5", ("add",)),
)  # fmt: skip
"""In an order in which each finds what it takes off."""


def operation_costs(repeats: int = 20, nodes: int = NODES) -> dict[str, float]:
    """Operation -> microseconds of CPU over so many nodes, a median; nothing is kept from before."""
    snapshot, pods = _cluster(nodes, repeats)
    found: dict[str, float] = {}
    base = _microseconds("node.ready", snapshot, pods)
    for operation in OPERATIONS:
        few, many = (_microseconds(operation.condition(count), snapshot, pods) for count in (FEW, MANY))
        beside = sum(found[name] for name in operation.beside)
        copies = MANY - FEW if operation.name != "logic" else 2 * (MANY - FEW)
        found[operation.name] = max(0.5, (many - few) / copies - beside)
    return {**found, "rule": base}


def _cluster(nodes: int, pods: int) -> tuple[Snapshot, list[PodInfo]]:
    view = ClusterView()
    workload = Workload("operations", "", nodes, nodes * PODS + pods, mixed, peer_node)
    for number, node in enumerate(nodes_of(workload)):
        view.add_or_update_node(_labelled(node, number) if number % 2 else node)
    names = list(view.nodes.names)
    infos = []
    for number, pod in enumerate(pods_of(workload, "operations")):
        change = view.add_or_update_pod(pod)
        assert change.new is not None
        if number < nodes * PODS:
            view.assume(change.new.uid, names[number % nodes])
        else:
            infos.append(change.new)
    return view.snapshot(), infos


def _labelled(node: Node, number: int) -> Node:
    """The node with the labels that are looked up; every other node has none of them."""
    labels = (node.metadata.labels or {}) | {f"k{n}": str((number + n) % 50) for n in range(1, MANY + 1)}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))


def _microseconds(condition: str, snapshot: Snapshot, pods: list[PodInfo]) -> float:
    lets = "".join(f"let a{n} = node.podCount > {n}\nlet b{n} = node.podCount < {n}\n" for n in range(MANY))
    named = "\n".join(line for line in lets.splitlines() if line.split()[1] in condition)
    result = compile_text(f'policy "operations" {{\n{named}\nfilter "measured" {{ require {condition} }}\n}}')
    assert not result.failed, [one.message for one in result.diagnostics]
    rule: FilterPlugin = next(one for one in result.profiles[0].filters if one.name == "measured")
    rows = np.arange(snapshot.nodes.n)
    spent = []
    for info in pods:
        started = time.process_time_ns()
        _, state = rule.pre_filter(info, snapshot)
        rule.filter(state, snapshot, rows)
        spent.append(time.process_time_ns() - started)
    return statistics.median(spent) / 1e3
