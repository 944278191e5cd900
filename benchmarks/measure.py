"""Measures what was asked for, and makes a record of it."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from benchmarks.audit import WrongDecision
from benchmarks.churn import NODES as NODES_OF_CHURN
from benchmarks.churn import PODS as PODS_OF_CHURN
from benchmarks.churn import churn
from benchmarks.churn import figures as figures_of_churn
from benchmarks.cluster import NotOurs
from benchmarks.decisions import decisions, memory
from benchmarks.devices import devices
from benchmarks.end_to_end import Contestant, EndToEndFigures, runs
from benchmarks.extender import extender
from benchmarks.figures import Figure
from benchmarks.language import language
from benchmarks.options import Asked, BenchError
from benchmarks.pages import NODES as NODES_OF_PAGES
from benchmarks.pages import PODS as PODS_OF_PAGES
from benchmarks.pages import pages
from benchmarks.plan import plans
from benchmarks.processes import ChildFailed
from benchmarks.queue import queue
from benchmarks.ratios import NODES, PODS, ratios
from benchmarks.recording import recording
from benchmarks.records import Machine, Record, middle_runs, this_machine
from benchmarks.reload import reloads
from benchmarks.scale import NODES as NODES_OF_SCALE
from benchmarks.scale import PODS as PODS_OF_SCALE
from benchmarks.scale import scale
from benchmarks.server import server
from benchmarks.tuning.hour import tuning
from policyengine.kube.config import credentials
from policyengine.kube.config.access import check_access
from policyengine.kube.http.client import Client
from policyengine.simulator.real_server import ServerError
from policyengine.simulator.sandbox import world, write_kubeconfig

OURS = "policyengine"
RECORDING = "policyengine, recording"
WRONG = 1
LIMITS = (
    Contestant("limit", limit=True, events=False),
    Contestant("limit, watch", limit=True, watch=True, events=False),
    Contestant("limit, watch, events", limit=True, watch=True),
)
"""Clients that decide nothing, in the order of how much else they do."""


def measure(asked: Asked) -> Record:
    """The record. Raises `BenchError`."""
    machine = this_machine()
    try:
        if asked.what == "decisions":
            found = decisions(asked.workload, asked.profile)
            return Record.made(asked.what, asked.size, asked.command, machine, asdict(found))
        if asked.what == "scale":
            return _scale(asked, machine)
        if asked.what in PARTS:
            key = asked.size if asked.what == "memory" else ""
            return record_of_rows(asked.what, key, asked.command, machine, PARTS[asked.what](asked))
        return _on_a_server(asked, machine)
    except (ChildFailed, NotOurs, ServerError) as error:
        raise BenchError(str(error)) from None
    except WrongDecision as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(WRONG)


PARTS: Mapping[str, Callable[[Asked], list[Figure]]] = {
    "memory": lambda asked: memory(asked.workload, asked.profile),
    "language": lambda asked: language(),
    "queue": lambda asked: queue(),
    "reload": lambda asked: reloads(),
    "plan": lambda asked: plans(),
    "tuning": lambda asked: tuning(),
    "recording": lambda asked: recording(),
    "devices": lambda asked: devices(),
    "server": lambda asked: asyncio.run(server(runs=asked.runs)),
    "extender": lambda asked: asyncio.run(extender(asked.workload.nodes)),
    "pages": lambda asked: asyncio.run(pages(asked.nodes or NODES_OF_PAGES, asked.pods or PODS_OF_PAGES)),
    "churn": lambda asked: _churn(asked),
    "ratios": lambda asked: ratios(asked.nodes or NODES, asked.pods or PODS),
}
"""What is measured alone, and told as one number a row."""


def record_of_rows(what: str, key: str, command: str, machine: Machine, rows: Sequence[Figure]) -> Record:
    """The record of a part alone; the rows of `ratios` are what two runs can be compared by."""
    compared = {row.what: row.value for row in rows} if what == "ratios" else {}
    return Record.made(what, key, command, machine, {"rows": [asdict(row) for row in rows]}, compared)


def _churn(asked: Asked) -> list[Figure]:
    nodes, pods = asked.nodes or NODES_OF_CHURN, asked.pods or PODS_OF_CHURN
    return figures_of_churn(asyncio.run(churn(nodes, pods, asked.beside, _say)))


def _scale(asked: Asked, machine: Machine) -> Record:
    nodes = [count for count in NODES_OF_SCALE if count <= (asked.nodes or NODES_OF_SCALE[-1])]
    pods = [count for count in PODS_OF_SCALE if count <= (asked.pods or PODS_OF_SCALE[-1])]
    if not nodes or not pods:
        raise click.UsageError(f"the least points are of {NODES_OF_SCALE[0]:,} nodes and {PODS_OF_SCALE[0]:,} pods")
    found = asyncio.run(scale(nodes, pods, _say))
    exponents = {f"exponent, {name}": value for name, value in found.exponents.items()}
    return Record.made("scale", f"{nodes[-1]}/{pods[-1]}", asked.command, machine, asdict(found), exponents)


def _on_a_server(asked: Asked, machine: Machine) -> Record:
    # As Ctrl-C does: every process that was started ends before this one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if asked.kubeconfig is not None:
        asyncio.run(_reach(asked.kubeconfig))
    found = asyncio.run(_end_to_end(asked))
    return end_to_end_record(found, asked.policy, asked.command, machine)


async def _end_to_end(asked: Asked) -> dict[str, list[EndToEndFigures]]:
    async with _server_for(asked) as path:
        return await runs(asked.workload, contestants(asked), path, asked.runs, _report)


def end_to_end_record(
    found: Mapping[str, Sequence[EndToEndFigures]], policy: str, command: str, machine: Machine
) -> Record:
    """The record of some runs; ratios of ours to each other contestant, of their median runs."""
    first = next(run for each in found.values() for run in each)
    what = "end-to-end" if OURS in found else "limit"
    key = f"{first.workload} {first.nodes}/{first.pods} {policy} {first.server}"
    key += " during" * (first.created == "during") + " shared" * any("schedulers" in name for name in found)
    figures: dict[str, Any] = {"runs": [asdict(run) for each in found.values() for run in each]}
    record = Record.made(what, key, command, machine, figures)
    medians = middle_runs(record)
    if OURS not in medians:
        return record
    ours, ratios = medians.pop(OURS), dict[str, float]()
    for name, other in medians.items():
        for told, per in (("time", "binds_per_second"), ("time to the last event", "events_per_second")):
            if ours[per] and other[per]:
                ratios[f"{told} / {name}"] = other[per] / ours[per]
        ratios[f"cpu / {name}"] = ours["cpu_seconds"] / max(other["cpu_seconds"], 1e-9)
    return replace(record, ratios=ratios)


def contestants(asked: Asked) -> Sequence[Contestant]:
    """Ours, and those it is measured beside."""
    if asked.what == "limit":
        return LIMITS
    ours = Contestant(OURS, asked.profile.scheduler_name, asked.policy_text, asked.params)
    if asked.schedulers > 1:
        return [ours, replace(ours, name=f"{asked.schedulers} schedulers", schedulers=asked.schedulers)]
    found = [ours]
    if asked.records:
        found.append(replace(ours, name=RECORDING, records=True))
    if asked.beside:
        found.append(Contestant(asked.beside.split()[0].rpartition("/")[2], command=asked.beside))
    return [*found, *(LIMITS[1:] if asked.with_limit else ())]


def _report(run: EndToEndFigures) -> None:
    told = f"{run.contestant}: {run.bound:,} of {run.pods:,} bound, {run.binds_per_second:,.0f} a second"
    _say(told + (f"; it said: {run.last_words}" if run.bound < run.pods else ""))


def _say(told: str) -> None:
    click.echo(told, err=True)


@asynccontextmanager
async def _server_for(asked: Asked) -> AsyncIterator[Path | None]:
    """A kubeconfig: the one given, or that of a real server for as long as the block runs; None for embedded ones,
    each run's own."""
    if asked.apiserver == "embedded":
        yield asked.kubeconfig
        return
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        async with world("envtest") as running:
            path = Path(folder) / "kubeconfig"
            write_kubeconfig(path, running.kubeconfig)
            yield path


async def _reach(kubeconfig: Path) -> None:
    """Raises `Unreachable` or `AccessDenied`, which have exit codes of their own."""
    server = credentials.load(kubeconfig)
    client = Client(server.connect())
    try:
        await check_access(client, server.url, server.source)
    finally:
        await client.close()
