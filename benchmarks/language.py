"""Measures the toolchain of the language: lint, compile, and one filter over all nodes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.decisions import nodes_of, pods_of
from benchmarks.figures import Figure
from benchmarks.processes import with_byte_code
from benchmarks.workloads import Workload, mixed, peer_node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.compiler.front import checked
from policyengine.framework.plugin import FilterPlugin
from policyengine.language.diagnostics import Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.plugins.facts import plugin_facts
from policyengine.policy_compiler import compile_text

LINES = 300
FILTER = """\
policy "ten-operators" {
  scheduler "ten-operators"
  filter "typical" {
    require node.free.cpu - pod.requests.cpu >= 500m && node.free.memory - pod.requests.memory >= 1Gi
      && (node.podCount < 100 || node.zone == "zone0") && node.labels[?"tier"].orValue("") != "reserved"
      else "too little is left"
  }
}
"""
"""Ten operators: two subtractions, two `>=`, `<`, `==`, `!=`, two `&&` or three, one `||`; five columns are read."""


def language(repeats: int = 20, nodes: int = 5_000) -> list[Figure]:
    """Measure everything, each `repeats` times (processes a quarter as often); medians."""
    texts = [policy_text(LINES, number) for number in range(repeats + 1)]
    rounds = max(1, repeats // 4)
    compile_text(texts[0])
    lint_text(texts[0])
    linting = _median_ms([partial(lint_text, text) for text in texts[1:]])
    compiling = _median_ms([partial(compile_text, text) for text in texts[1:]])
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        file = Path(folder) / "bench.policy"
        file.write_text(texts[0], encoding="utf-8")
        lint_process = _process_ms(rounds, "lint", str(file))
    helping = _process_ms(rounds, "--help")
    evaluating = _median_ms(filter_work(nodes, repeats * 10)) * 1e3
    return [
        Figure(f"lint of {LINES} lines, warm, CPU", linting, "ms", at_most=150),
        Figure("the same as a process, by the clock", lint_process, "ms", at_most=600),
        Figure("compile: text to profile, CPU", compiling, "ms", at_most=60),
        Figure("`policyengine --help`, by the clock", helping, "ms", at_most=150),
        Figure(f"a filter of ten operators over {nodes:,} nodes, CPU", evaluating, "µs"),
    ]


def lint_text(text: str) -> None:
    """Everything `policyengine lint` does to a text that was read."""
    source = Source("bench.policy", text)
    found = checked([source], plugin_facts())
    lint(source, found.trees[0], found.policies, plugin_facts(), Settings())


def policy_text(lines: int, number: int) -> str:
    """A policy of `lines` lines without a mistake: filters, scores and what they share, no two alike."""
    head = [
        f'policy "bench-{number}" {{',
        '  scheduler "bench"',
        "",
        '  let team = pod.labels[?"team"].orValue("")',
        "  let left = node.free.cpu - pod.requests.cpu",
        "",
        "  queue { order by pod.priority desc, pod.qos desc }",
        "",
    ]
    body: list[str] = []
    rule = 0
    while len(head) + len(body) + 1 + 8 <= lines:
        body += _rules(rule, number)
        rule += 1
    missing = lines - len(head) - len(body) - 1
    return "\n".join([*head, *body, *["  // what follows is the end"] * missing, "}"]) + "\n"


def _rules(rule: int, number: int) -> list[str]:
    """A filter and a score, eight lines."""
    return [
        f'  filter "rule-{rule}" when team == "team-{rule}-{number}" {{',
        f'    require node.labels[?"team-{rule}"].orValue("") != "reserved" && node.podCount < {100 - rule}',
        f'      else "kept for others by rule {rule}"',
        "  }",
        "",
        f'  score "score-{rule}" weight {1 + rule % 9} when team != "team-{rule}"',
        f"    = clamp(90 * ratio(left, node.allocatable.cpu) + (node.podCount > {rule} ? {rule % 9 + 1} : 0), 0, 99)",
        "",
    ]


def _median_ms(works: Sequence[Callable[[], object]]) -> float:
    """Milliseconds of CPU of one of them."""
    spent = []
    for work in works:
        started = time.process_time_ns()
        work()
        spent.append(time.process_time_ns() - started)
    return statistics.median(spent) / 1e6


def _process_ms(rounds: int, *arguments: str) -> float:
    """Milliseconds by the clock of a `policyengine` command that succeeds, after a run that is not counted: that one
    leaves the byte code that an installation has."""
    walls = []
    for _ in range(rounds + 1):
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "policyengine.commands.main", *arguments],
            capture_output=True,
            env=with_byte_code(),
            check=True,
        )
        walls.append(time.monotonic() - started)
    return statistics.median(walls[1:]) * 1e3


def filter_work(nodes: int, pods: int) -> list[Callable[[], object]]:
    """The rule alone, for each of so many pods: what it takes from the pod, then its verdict on every row."""
    result = compile_text(FILTER)
    assert not result.failed, result.diagnostics
    rule: FilterPlugin = next(one for one in result.profiles[0].filters if one.name == "typical")
    view = ClusterView()
    workload = Workload("language", "", nodes, pods, mixed, peer_node)
    for node in nodes_of(workload):
        view.add_or_update_node(node)
    infos = []
    for pod in pods_of(workload, "ten-operators"):
        change = view.add_or_update_pod(pod)
        assert change.new is not None
        infos.append(change.new)
    snapshot = view.snapshot()
    rows = np.arange(snapshot.nodes.n)

    def evaluate(info: PodInfo) -> object:
        _, state = rule.pre_filter(info, snapshot)
        return rule.filter(state, snapshot, rows)

    return [partial(evaluate, info) for info in infos]
