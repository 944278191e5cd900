"""The part of docs/performance.md about parts alone: decisions, scale, sharing, language, queue, server, extender."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from benchmarks.page_ends import made
from benchmarks.page_targets import Row, at_least, at_most, table
from benchmarks.records import Json, Record


def alone(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    """A section for each part that was measured. `drawn`: {key of a record: its picture}."""
    yield _decisions([one for one in records if one.what == "decisions"])
    yield _memory([one for one in records if one.what == "memory"])
    for record in records:
        if record.what == "scale":
            yield _scale(record, drawn.get(record.key, ""))
        elif record.what == "sharing":
            yield _sharing(record)
    for what, (title, told, rows) in _PARTS.items():
        for record in records:
            if record.what == what:
                head = [f"## {title}", "", *([told, ""] if told else [])]
                yield "\n".join([*head, *table(rows(record.figures)), "", made(record)]) + "\n"
    for record in records:
        if record.what == "instructions":
            yield _instructions(record)


def _decisions(chosen: Sequence[Record]) -> str:
    if not chosen:
        return ""
    lines = [
        "## Decisions alone",
        "",
        "CPU of the core in one process, without a server; median / 99th percentile.",
        "",
        "| workload | nodes / pods | policy | decisions/s | decision µs | pod event µs | node event µs | checked |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for record in chosen:
        one = record.figures
        spreads = " | ".join(
            f"{one[name]['median']:.0f} / {one[name]['p99']:.0f}" for name in ("decision", "pod_event", "node_event")
        )
        lines.append(
            f"| {one['workload']} | {one['nodes']:,} / {one['pods']:,} | {one['policy']} |"
            f" {one['decisions_per_second']:,.0f} | {spreads} | {one['checks']} |"
        )
    return "\n".join([*lines, "", f"`{chosen[-1].command}` and its like; {chosen[-1].date}."]) + "\n"


def _memory(chosen: Sequence[Record]) -> str:
    if not chosen:
        return ""
    told = "Resident memory of a core that holds a cluster, pods placed round robin; *before*: everything imported."
    lines = ["## Memory", "", told, "", "| nodes | pods | MB | before | KB an object | |", "|--:|--:|--:|--:|--:|---|"]
    for record in chosen:
        one = record.figures
        each = (one["after_mb"] - one["before_mb"]) * 1024 / max(1, one["nodes"] + one["pods"])
        sizes = f"{one['nodes']:,} | {one['pods']:,} | {one['after_mb']:,.0f} | {one['before_mb']:,.0f}"
        lines.append(f"| {sizes} | {each:.2f} | `{record.command}` |")
    return "\n".join(lines) + "\n"


def _scale(record: Record, picture: str) -> str:
    figures = record.figures
    lines = [
        "## As the cluster grows",
        "",
        "One process a point. *different*: a decision for a pod unlike the one before; *identical*: like it; medians of"
        " CPU. *taken in*: every node and pod, from decoded objects to rows. The power a cost grows with is the slope"
        " of a line through the logarithms, by least squares.",
        "",
        "| nodes | pods placed | different µs | identical µs | taken in s | KB a node | KB a pod | peak MB |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {point['nodes']:,} | {point['pods']:,} | {point['different_us']:,.0f} | {point['identical_us']:,.0f} |"
        f" {point['start_cpu_seconds']:.2f} | {point['kb_per_node']:.2f} | {point['kb_per_pod']:.2f} |"
        f" {point['peak_mb']:,.0f} |"
        for point in (*figures["by_nodes"], *figures["by_pods"])
    ]
    lines += ["", "| cost | grows with the power |", "|---|--:|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in figures["exponents"].items()]
    lines += ["", *(f"Given up: {told}." for told in figures["given_up"])]
    if picture:
        lines += [f"![cost of a decision against nodes and pods, both in logarithms]({picture})", ""]
    return "\n".join([*lines, made(record)]) + "\n"


def _sharing(record: Record) -> str:
    figures = record.figures
    lines = [
        f"## {figures['schedulers']} schedulers on one cluster",
        "",
        f"{figures['workload']}, {figures['nodes']:,} nodes, {figures['pods']:,} pods, split pod by pod; each scheduler"
        " is a process with a policy, a scheduler name and a lease of its own. All share the machine with the server."
        " *Apart*: each policy keeps to zones of its own by a filter, so that no two of them can fill one node.",
        "",
        "| schedulers | bound | binds/s | CPU s, each | peak MB, each | bound twice | nodes over their size |",
        "|--:|--:|--:|---|---|--:|--:|",
    ]
    for run in (_median(figures[name]) for name in ("alone", "together", "apart") if figures[name]):
        cpu = ", ".join(f"{share['cpu_seconds']:.1f}" for share in run["shares"])
        held = ", ".join(f"{share['peak_mb']:,.0f}" for share in run["shares"])
        lines.append(
            f"| {run['schedulers']}{' apart' * run['apart']} | {run['bound']:,} | {run['binds_per_second']:,.0f} |"
            f" {cpu} | {held} | {run['moved']} | {len(run['overcommitted'])} |"
        )
    every = (*figures["alone"], *figures["together"], *figures["apart"])
    checks = sum(share["checks"] for run in every for share in run["shares"])
    leaders = min(len({share["holder"] for share in run["shares"] if share["holder"]}) for run in figures["together"])
    told = f"{leaders} leaders, each of its own lease; {checks} decisions made again by a fresh evaluator, all equal."
    return "\n".join([*lines, "", told, "", made(record, figures["server"])]) + "\n"


def _median(runs: Sequence[Json]) -> Json:
    wanted = statistics.median_low([run["binds_per_second"] for run in runs])
    return next(run for run in runs if run["binds_per_second"] == wanted)


def _instructions(record: Record) -> str:
    told = f"Counted by {record.figures['valgrind']}; a busy machine does not change them."
    lines = ["## Instructions", "", told, ""]
    lines += ["| | thousands |", "|---|--:|"]
    lines += [f"| {name} | {value:,.0f} |" for name, value in record.figures["thousands"].items()]
    return "\n".join([*lines, "", made(record)]) + "\n"


def _language(one: Json) -> Iterator[Row]:
    yield at_most(f"lint of {one['lines']} lines, warm, CPU", 60, one["lint_warm_ms"], "ms")
    yield at_most("the same as a process, by the clock", 400, one["lint_process_ms"], "ms")
    yield at_most("`policyengine --help`, by the clock", 150, one["help_process_ms"], "ms")
    parts = f" ({one['check_ms']:.0f} to checked policies, {one['build_ms']:.0f} from there)"
    yield at_most("compile: text to profile, CPU", 30, one["compile_ms"], "ms", 0, parts)
    nodes = f"{one['filter_nodes']:,}"
    yield at_most(f"a filter of ten operators over {nodes} nodes, CPU", 40, one["filter_us"], "µs")


def _queue(one: Json) -> Iterator[Row]:
    for name in ("add", "pop", "refuse", "update", "remove"):
        yield at_most(f"{_VERBS[name]}, {one['pending']:,} pending", 20, one[f"{name}_us"], "µs", 1)
    yield at_most("an event that wakes nobody", 50, one["idle_event_us"], "µs", 1)
    slower = 100 * (one["decision_beside_refused_us"] / one["decision_us"] - 1)
    yield at_most(f"a decision beside {one['refused']:,} refused pods, slower by", 5, slower, "%", 1)
    yield at_most(f"a gang of {one['gang']:,} on {one['gang_nodes']:,} nodes, placed", 300, one["gang_ms"], "ms")


def _reload(one: Json) -> Iterator[Row]:
    size = f"a policy of {one['lines']} lines"
    parts = f" (of {one['compile_ms']:.0f} ms of CPU beside it)"
    yield at_most(f"{size} compiled: the event loop held for, at most", 5, one["gap_ms"], "ms", 1, parts)
    pods = f"{one['waiting']:,} pods waiting"
    yield at_most(f"the swap, {pods}, CPU", 5, one["swap_ms"], "ms", 1)
    more = one["first_cycle_ms"] - one["cycle_ms"]
    yield at_most("the first decision after it, dearer by", 5, more, "ms", 1, f" ({one['nodes']:,} nodes)")


_VERBS: Final = {
    "add": "add a pod",
    "pop": "take the next one",
    "refuse": "put a refused one away",
    "update": "update one",
    "remove": "remove one",
}


def _server(one: Json) -> Iterator[Row]:
    bind, event = (f", {one[f'{name}_cpu_us']:.1f} µs of CPU each" for name in ("binding", "event"))
    yield at_least("bindings, one watch attached", 4_000, one["bindings_per_second"], "a second", 0, bind)
    yield at_least(f"events to {one['watchers']} watchers", 10_000, one["events_per_second"], "a second", 0, event)
    yield at_most(f"{one['nodes']:,} nodes and {one['pods']:,} pods, at most", 400, one["listed_mb"], "MB")
    yield at_most("start as a process", 300, one["start_ms"], "ms", 0, f", {one['start_cpu_ms']:.0f} ms of CPU")


def _extender(one: Json) -> Iterator[Row]:
    for prefix, what, field, limit, cpu in (
        ("", f"names, {one['rate']:g} a second", "p99", 10, one["request_cpu_us"] / 1e3),
        ("whole_", f"node objects, {one['whole_mb']:.0f} MB a request", "median", 150, one["whole_request_cpu_ms"]),
    ):
        for verb in ("filter", "prioritize"):
            spread = {name: value / 1e3 for name, value in one[prefix + verb].items() if name != "count"}
            more = f"; median {spread['median']:.2f}, p99 {spread['p99']:.2f}; {cpu:.2f} ms of CPU a request"
            yield at_most(f"{verb}, {what}: {field}", limit, spread[field], "ms", 2, more)
    served = {name: one["served"][name] / 1e3 for name in ("median", "p99")}
    more = f"; median {served['median']:.2f}; without what the load itself was late by"
    yield at_most("both by names, from the moment a request was sent: p99", 10, served["p99"], "ms", 2, more)


_PARTS: Final[dict[str, tuple[str, str, Callable[[Json], Iterator[Row]]]]] = {
    "language": ("The language", "", _language),
    "queue": ("The queue", "CPU of the core in one process.", _queue),
    "reload": ("A policy replaced", "", _reload),
    "server": ("The embedded API server", "On a core of its own.", _server),
    "extender": ("The extender", "On a core of its own; by the clock.", _extender),
}
"""What was measured -> title, explanation, targets."""
