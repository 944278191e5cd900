"""The pieces of work whose instructions are counted; run by `instructions` under valgrind.

Arguments: the pieces to do; none means all. Says {piece: how often it was done}. Each piece is prepared, and done once,
before it is counted: what is made once and kept does not show.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Final

from benchmarks.decisions import EPOCH, nodes_of, pods_of
from benchmarks.language import LINES, filter_work, lint_text, policy_text
from benchmarks.processes import say
from benchmarks.scheduler_perf import WORKLOADS
from policyengine.catalogue import compile_text
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.messages import CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.state import SchedulerState

NODES: Final = 1_000
WARM: Final = 10
"""Decisions before those that are counted."""
DECISIONS: Final = 40
FILTER_NODES: Final = 5_000

Work = Callable[[], object]
Piece = tuple[Work, int]
"""What is counted, and how many it is."""


def decisions(workload: str) -> Piece:
    """Cycles of a workload's pods, one after the other."""
    chosen = WORKLOADS[workload].sized(NODES, WARM + DECISIONS)
    state = SchedulerState([default_profile()])
    for node in nodes_of(chosen):
        state.handle(NodeObserved(node), EPOCH)
    for pod in pods_of(chosen, "default-scheduler"):
        state.handle(PodObserved(pod), EPOCH)
    state.handle(CacheSynced(), EPOCH)
    state.handle(CyclesRequested(WARM), EPOCH)
    return lambda: state.handle(CyclesRequested(DECISIONS), EPOCH), DECISIONS


def pod_events() -> Piece:
    """Pods taken in."""
    chosen = WORKLOADS["peer-basic"].sized(NODES, WARM + DECISIONS)
    state = SchedulerState([default_profile()])
    messages = [PodObserved(pod) for pod in pods_of(chosen, "default-scheduler")]
    for message in messages[:WARM]:
        state.handle(message, EPOCH)
    return lambda: [state.handle(message, EPOCH) for message in messages[WARM:]], DECISIONS


def lint() -> Piece:
    """A text like the one before, and not seen before."""
    lint_text(policy_text(LINES, 0))
    text = policy_text(LINES, 1)
    return lambda: lint_text(text), 1


def compile_policy() -> Piece:
    """The same, from text to profile."""
    compile_text(policy_text(LINES, 0))
    text = policy_text(LINES, 1)
    return lambda: compile_text(text), 1


def ten_operators() -> Piece:
    """A filter over every node."""
    warm, *counted = filter_work(FILTER_NODES, 11)
    warm()
    return lambda: [judge() for judge in counted], len(counted)


PIECES: Final[dict[str, Callable[[], Piece]]] = {
    "a decision, identical pods": lambda: decisions("peer-basic"),
    "a decision, different pods": lambda: decisions("peer-mixed"),
    "a decision, zone spread": lambda: decisions("peer-spread"),
    "a decision, zone affinity": lambda: decisions("peer-affinity"),
    "a pod taken in": pod_events,
    "lint of 300 lines": lint,
    "compile of 300 lines": compile_policy,
    "a filter of ten operators over 5,000 nodes": ten_operators,
}


def counted(works: Iterable[Work]) -> None:
    """Do each with counting on, and have the count written down."""
    for work in works:
        _tell("-i", "on")
        work()
        _tell("-i", "off")
        _tell("-d")


def _tell(*what: str) -> None:
    """A word to the valgrind this process runs under."""
    subprocess.run(["callgrind_control", *what, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)


def main(names: list[str]) -> None:
    """Count an empty piece, then the others."""
    gc.disable()
    prepared = {name: prepare() for name, prepare in PIECES.items() if not names or name in names}
    counted([lambda: None, *(work for work, _ in prepared.values())])
    say({name: times for name, (_, times) in prepared.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
