"""Measures the toolchain of the language: lint, compile, and one filter over all nodes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.decisions import nodes_of, pods_of
from benchmarks.operation_costs import operation_costs
from benchmarks.processes import with_byte_code
from benchmarks.workloads import Workload, mixed, peer_node
from benchmarks.yardstick import yardstick_ns
from policyengine.catalogue import checked_files, compile_checked, compile_text
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.compiler.front import checked
from policyengine.framework.plugin import FilterPlugin
from policyengine.language.diagnostics import Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.plugins.facts import plugin_facts

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


@dataclass(frozen=True, slots=True)
class LanguageFigures:
    """Milliseconds, microseconds where the name says so; medians."""

    lines: int
    lint_warm_ms: float
    """CPU of a lint of a text not seen before, everything imported."""
    lint_process_ms: float
    """Wall time of `policyengine lint FILE`, start-up included."""
    lint_process_cpu_ms: float
    compile_ms: float
    """CPU from text to profile: parse, check and all that follows."""
    check_ms: float
    """CPU of its first part, from text to checked policies."""
    build_ms: float
    """CPU of its second part, from checked policies to profiles."""
    help_process_ms: float
    """Wall time of `policyengine --help`."""
    filter_us: float
    """CPU of judging every node by a filter of ten operators, nothing kept from before."""
    filter_nodes: int
    yardstick_us: float
    operations: dict[str, float]
    """Operation -> microseconds over every node: what lint's estimates are made of (`language.lint.cost`)."""

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {
            "lint / yardstick": self.lint_warm_ms * 1e3 / self.yardstick_us,
            "compile / yardstick": self.compile_ms * 1e3 / self.yardstick_us,
            "filter / yardstick": self.filter_us / self.yardstick_us,
        }


def language(repeats: int = 20, nodes: int = 5_000) -> LanguageFigures:
    """Measure everything, each `repeats` times (processes a quarter as often)."""
    texts = [policy_text(LINES, number) for number in range(repeats + 1)]
    rounds = max(1, repeats // 4)
    compile_text(texts[0])
    lint_text(texts[0])
    linting = _median_cpu(lint_text, texts[1:])
    compiling = _median_cpu(compile_text, texts[1:])
    checking, building = _phases([policy_text(LINES, number) for number in range(repeats + 1, 2 * repeats + 1)])
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        file = Path(folder) / "bench.policy"
        file.write_text(texts[0], encoding="utf-8")
        lints = _processes(rounds, "lint", str(file))
    helps = _processes(rounds, "--help")
    return LanguageFigures(
        lines=LINES,
        lint_warm_ms=linting / 1e6,
        lint_process_ms=statistics.median(wall for wall, _ in lints) * 1e3,
        lint_process_cpu_ms=statistics.median(cpu for _, cpu in lints) * 1e3,
        compile_ms=compiling / 1e6,
        check_ms=checking / 1e6,
        build_ms=building / 1e6,
        help_process_ms=statistics.median(wall for wall, _ in helps) * 1e3,
        filter_us=_filter_ns(nodes, repeats * 10) / 1e3,
        filter_nodes=nodes,
        yardstick_us=yardstick_ns() / 1e3,
        operations=operation_costs(repeats, nodes),
    )


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


def _median_cpu(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Nanoseconds a text."""
    spent = []
    for text in texts:
        started = time.process_time_ns()
        work(text)
        spent.append(time.process_time_ns() - started)
    return statistics.median(spent)


def _phases(texts: Sequence[str]) -> tuple[float, float]:
    """Nanoseconds a text, from it to checked policies, and from those to profiles."""
    checks, builds = [], []
    for text in texts:
        started = time.process_time_ns()
        policies, findings = checked_files([Source("bench.policy", text)])
        between = time.process_time_ns()
        built = [compile_checked(policy) for policy in policies]
        builds.append(time.process_time_ns() - between)
        checks.append(between - started)
        assert built and not findings
    return statistics.median(checks), statistics.median(builds)


def _processes(rounds: int, *arguments: str) -> list[tuple[float, float]]:
    """So many runs of a command, after one that is not counted: it leaves the byte code that an installation has."""
    return [_process(*arguments) for _ in range(rounds + 1)][1:]


def _process(*arguments: str) -> tuple[float, float]:
    """Wall and CPU seconds of a `policyengine` command that succeeds."""
    started = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "policyengine.commands.main", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=with_byte_code(),
    )
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stderr is not None
    told = child.stderr.read().decode("utf-8", "replace")
    child.stderr.close()
    if child.returncode != 0:
        raise RuntimeError(f"`policyengine {' '.join(arguments)}` ended with {child.returncode}: {told.strip()}")
    return wall, usage.ru_utime + usage.ru_stime


def _filter_ns(nodes: int, repeats: int) -> float:
    spent = []
    for judge in filter_work(nodes, repeats):
        started = time.process_time_ns()
        judge()
        spent.append(time.process_time_ns() - started)
    return statistics.median(spent)


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

    def judge(info: PodInfo) -> object:
        _, state = rule.pre_filter(info, snapshot)
        return rule.filter(state, snapshot, rows)

    return [partial(judge, info) for info in infos]
