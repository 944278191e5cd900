"""The text form of `policyengine simulate`: tables of pods and nodes, a sparkline of each, what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter, methodcaller
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from policyengine.commands.console import REPORT, plain_table, standard_output
from policyengine.control_characters import escaped
from policyengine.trials.ledger import NodeRecord, PodRecord, Sample, clock, mean_share, percentile, thinned
from policyengine.trials.outcome import Outcome, resources, shown_amount, waits_of

ROWS: Final = 30
"""Pods and nodes shown one by one; of more, a line a template, and the fullest nodes."""
MESSAGE: Final = 100
BARS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 60


def show(outcome: Outcome, console: Console | None = None) -> None:
    """Print it; colours only on a terminal, as rich decides."""
    console = console or standard_output(REPORT)
    console.print(_headline(outcome), soft_wrap=True)
    pods = list(outcome.ledger.pods.values())
    for part in (_pods(pods) if len(pods) <= ROWS else _templates(pods, outcome.end), _nodes(outcome)):
        console.print()
        console.print(part)
    waiting = _waiting(pods) if len(pods) > ROWS else None
    if waiting is not None:
        console.print()
        console.print(waiting)
    console.print()
    for line in (*_over_time(outcome), _summary(outcome)):
        console.print(line, soft_wrap=True)
    if outcome.verdicts:
        console.print()
    for verdict in outcome.verdicts:
        mark = Text("passed  ", "green") if verdict.passed else Text("failed  ", "bold red")
        console.print(
            Text.assemble(mark, escaped(verdict.text), (f"  {escaped(verdict.found)}", "dim")), soft_wrap=True
        )


def _headline(outcome: Outcome) -> Text:
    policies = ", ".join(f"{one.name} {one.policy_hash[:8]}" for one in outcome.profiles)
    name = escaped(outcome.scenario.name) or "scenario"
    return Text.assemble((name, "bold"), f"  {clock(outcome.end)}, policy {policies}, seed {outcome.seed}")


def _pods(pods: Sequence[PodRecord]) -> Table:
    table = plain_table("pod", "queued", "attempts", "bound", "node", "waited", "became", right=("attempts",))
    for pod in pods:
        bound = "" if pod.bound is None else clock(pod.bound)
        waited = "" if pod.waited is None else clock(pod.waited)
        became = Text(pod.state, {"running": "green", "pending": "red", "preempted": "yellow"}.get(pod.state, ""))
        if pod.ended is not None:
            became.append(f" at {clock(pod.ended)}")
        elif pod.bound is None and pod.told:
            became.append(f": {_cut(escaped(pod.told))}", "dim")
        table.add_row(_shown(pod.name), clock(pod.created), str(pod.attempts), bound, _shown(pod.node), waited, became)
    return table


def _shown(text: str) -> Text:
    """A cell that holds what others wrote: neither controls nor rich's markup act."""
    return Text(escaped(text))


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE else text[: MESSAGE - 1] + "…"


def _templates(pods: Sequence[PodRecord], end: float) -> Table:
    """A line for the pods of each template."""
    headers = ("pods", "came", "bound", "waiting", "preempted", "attempts", "waited p50", "p99", "max")
    table = plain_table(*headers, right=headers[1:])
    for name in dict.fromkeys(pod.template for pod in pods):
        of = [pod for pod in pods if pod.template == name]
        waits = sorted(pod.waited for pod in of if pod.waited is not None)
        counts = [len(of), len(waits), sum(pod.state == "pending" for pod in of)]
        counts += [sum(pod.how == "preempted" for pod in of), sum(pod.attempts for pod in of)]
        shown = (clock(percentile(waits, which)) if waits else "" for which in ("p50", "p99", "max"))
        table.add_row(_shown(name), *(f"{count:,}" for count in counts), *shown)
    return table


def _waiting(pods: Sequence[PodRecord]) -> Table | None:
    """Why pods wait at the end, the most frequent reason first."""
    told = Counter(pod.told or "nothing was said" for pod in pods if pod.state == "pending")
    if not told:
        return None
    table = plain_table("pods", "wait because", right=("pods",))
    for message, number in told.most_common(5):
        table.add_row(f"{number:,}", _shown(_cut(message)))
    return table


def _nodes(outcome: Outcome) -> Table:
    """The nodes, the fullest first where there are many."""
    nodes = list(outcome.ledger.nodes.values())
    names = resources(outcome.ledger)
    left = max(0, len(nodes) - ROWS // 3) if len(nodes) > ROWS else 0
    if left:
        nodes = sorted(nodes, key=lambda node: -node.peak_share)[: len(nodes) - left]
    headers = [f"peak {name}" for name in names]
    table = plain_table(
        f"node ({left} more, less full)" if left else "node", "pods", *headers, right=("pods", *headers)
    )
    for node in nodes:
        table.add_row(_shown(node.name), str(node.pods), *(_peak(node, name) for name in names))
    return table


def _peak(node: NodeRecord, name: str) -> str:
    """`3500m of 4`; what a node that is gone had is not known any more."""
    amount, room = node.peak.get(name, 0), node.room.get(name)
    return shown_amount(name, amount) + (f" of {shown_amount(name, room)}" if room is not None else "")


def _over_time(outcome: Outcome) -> list[Text]:
    """A sparkline of each resource, and of the queue."""
    samples, end = outcome.ledger.samples, outcome.end
    lines = []
    for name in resources(outcome.ledger):
        told = f"{mean_share(samples, name, 0.0, end):.0%} in the mean"
        lines.append(_line(name, outcome, methodcaller("share", name), 1.0, "cyan", told))
    most = max((one.pending for one in samples), default=0)
    lines.append(_line("pending", outcome, attrgetter("pending"), float(most or 1), "magenta", f"at most {most}"))
    return lines


def _line(name: str, outcome: Outcome, value: Callable[[Sample], float], top: float, colour: str, told: str) -> Text:
    stretches = thinned(outcome.ledger.samples, outcome.end, WIDTH)
    values = [max((value(one) for one in stretch), default=0.0) for stretch in stretches]
    column = max(map(len, ("pending", *resources(outcome.ledger)))) + 2
    return Text.assemble(f"{escaped(name):<{column}}", (sparkline(values, top), colour), f"  {told}")


def sparkline(values: Sequence[float], top: float) -> str:
    """A bar a value: the lowest for 0, the highest for `top` and beyond, and only there."""
    last = len(BARS) - 1
    return "".join(BARS[min(last, -(-int(value / top * 1000) * last // 1000))] for value in values)


def _summary(outcome: Outcome) -> Text:
    ledger = outcome.ledger
    waits = waits_of(ledger)
    attempts = sum(pod.attempts for pod in ledger.pods.values())
    told = f"{len(ledger.pods):,} pod{'s' * (len(ledger.pods) != 1)}, {len(waits):,} bound in {attempts:,} attempts"
    if waits:
        shown = (f"{which} {clock(percentile(waits, which))}" for which in ("p50", "p90", "p99", "max"))
        told += f"; waited {', '.join(shown)}"
    return Text(told + (f"; {ledger.preempted:,} preempted" if ledger.preempted else ""))
