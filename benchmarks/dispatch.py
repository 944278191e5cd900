"""What `python -m benchmarks` was asked to measure, measured."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.options import Asked, BenchError

if TYPE_CHECKING:
    from benchmarks.end_to_end import Contestant, EndToEndFigures
    from benchmarks.measure import Figures
    from benchmarks.records import Record

OURS = "policyengine"
WRONG = 1


def measure(asked: Asked) -> Record | None:
    """The record; None where what it needs is not installed, after a line that says so. Raises `BenchError`."""
    from benchmarks.audit import WrongDecision
    from benchmarks.cluster import NotOurs
    from benchmarks.instructions import NotCounted
    from benchmarks.processes import ChildFailed
    from policyengine.simulator.real_server import ServerError

    try:
        return _alone(asked) if asked.what in _PARTS else _on_a_server(asked)
    except NotCounted as told:
        click.echo(f"skipped: {told}", err=True)
        return None
    except (ChildFailed, NotOurs, ServerError) as error:
        raise BenchError(str(error)) from None
    except WrongDecision as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(WRONG)


def _alone(asked: Asked) -> Record:
    from benchmarks.machine import this_machine
    from benchmarks.measure import alone_record

    machine = this_machine()
    figures, key = _PARTS[asked.what](asked)
    return alone_record(figures, key, asked.command, machine)


def _decisions(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.decisions import decisions

    return decisions(asked.workload, asked.profile), asked.size


def _memory(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.decisions import memory

    return memory(asked.workload, asked.profile), asked.size


def _scale(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.scale import NODES, PODS, scale

    nodes = [count for count in NODES if count <= (asked.nodes or NODES[-1])]
    pods = [count for count in PODS if count <= (asked.pods or PODS[-1])]
    if not nodes or not pods:
        raise click.UsageError(f"the least points are of {NODES[0]:,} nodes and {PODS[0]:,} pods")
    found = asyncio.run(scale(nodes, pods, _say))
    return found, f"{nodes[-1]}/{pods[-1]}"


def _language(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.language import language

    return language(), ""


def _queue(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.queue import queue

    return queue(), ""


def _reload(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.reload import reloads

    return reloads(), ""


def _server(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.server import server

    return asyncio.run(server(runs=asked.runs)), ""


def _extender(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.extender import extender

    found = asyncio.run(extender(asked.workload.nodes))
    return found, f"{found.nodes}"


def _instructions(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.instructions import instructions

    return instructions(), ""


def _ratios(asked: Asked) -> tuple[Figures, str]:
    from benchmarks.ratios import ratios

    return ratios(), ""


_PARTS: dict[str, Callable[[Asked], tuple[Figures, str]]] = {
    "decisions": _decisions,
    "memory": _memory,
    "scale": _scale,
    "language": _language,
    "queue": _queue,
    "reload": _reload,
    "server": _server,
    "extender": _extender,
    "instructions": _instructions,
    "ratios": _ratios,
}


def _on_a_server(asked: Asked) -> Record:
    # As Ctrl-C does: every process that was started ends before this one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if asked.kubeconfig is not None:
        asyncio.run(_reach(asked.kubeconfig))
    return asyncio.run(_sharing(asked) if asked.schedulers > 1 else _end_to_end(asked))


async def _end_to_end(asked: Asked) -> Record:
    from benchmarks import measure
    from benchmarks.machine import this_machine

    machine = this_machine()
    async with _server_for(asked) as path:
        found = await measure.runs(asked.workload, _contestants(asked), path, asked.runs, _report)
    return measure.end_to_end_record(found, OURS, asked.policy, asked.command, machine)


async def _sharing(asked: Asked) -> Record:
    from benchmarks.machine import this_machine
    from benchmarks.measure import alone_record
    from benchmarks.sharing import sharing

    machine = this_machine()
    async with _server_for(asked) as path:
        found = await sharing(asked.workload, asked.schedulers, path, asked.runs, _say)
    return alone_record(found, f"{asked.size} {asked.schedulers} {found.server}", asked.command, machine)


def _contestants(asked: Asked) -> Sequence[Contestant]:
    from benchmarks.end_to_end import Contestant
    from benchmarks.measure import LIMITS

    if asked.what == "limit":
        return LIMITS
    found = [Contestant(OURS, asked.profile.scheduler_name, asked.policy_text, asked.params)]
    if asked.beside:
        found.append(Contestant(asked.beside.split()[0].rpartition("/")[2], command=asked.beside))
    return [*found, *(LIMITS[1:] if asked.with_limit else ())]


def _report(run: EndToEndFigures) -> None:
    told = f"{run.contestant}: {run.bound:,} of {run.pods:,} bound, {run.binds_per_second:,.0f} a second"
    click.echo(told + (f"; it said: {run.last_words}" if run.bound < run.pods else ""), err=True)


def _say(told: str) -> None:
    click.echo(told, err=True)


@asynccontextmanager
async def _server_for(asked: Asked) -> AsyncIterator[Path | None]:
    """A kubeconfig: the one given, or that of a real server for as long as the block runs; None for embedded ones,
    each run's own."""
    if asked.apiserver == "embedded":
        yield asked.kubeconfig
        return
    from policyengine.simulator.kubeconfig import write_kubeconfig
    from policyengine.simulator.sandbox import world

    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        async with world("envtest") as running:
            path = Path(folder) / "kubeconfig"
            write_kubeconfig(path, running.kubeconfig)
            yield path


async def _reach(kubeconfig: Path) -> None:
    """Raises `Unreachable` or `AccessDenied`, which have exit codes of their own."""
    from policyengine.kube.config import credentials
    from policyengine.kube.http.access import check_access
    from policyengine.kube.http.client import Client

    server = credentials.load(kubeconfig)
    client = Client(server.connect())
    try:
        await check_access(client, server.url, server.source)
    finally:
        await client.close()
