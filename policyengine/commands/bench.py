"""`policyengine bench`: what a workload, a decision, an event, a cluster and a policy cost on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.simulator.benchmark.records import Record
    from policyengine.simulator.workloads import Workload

ALONE = ("decisions", "memory", "language", "queue", "server", "extender", "limit", "page")
DEFAULT_WORKLOAD = "peer-basic"
OURS = "policyengine"
WORSE, UNUSABLE = 1, 2


class BenchError(click.ClickException):
    """What was asked for cannot be measured."""

    exit_code = UNUSABLE


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks to be measured."""

    workload: Workload
    profile: Profile
    policy_text: str
    policy_file: Path | None
    kubeconfig: Path | None
    beside: str | None
    with_limit: bool
    runs: int
    command: str

    @property
    def size(self) -> str:
        """Workload, sizes and policy: what makes two measurements the same."""
        return f"{self.workload.name} {self.workload.nodes}/{self.workload.pods} {self.profile.name}"


@click.command()
@click.argument("what", metavar="WHAT")
@click.argument("workload", required=False)
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the cluster; default: the workload's.")
@click.option("--pods", type=click.IntRange(1), help="Pods to place, or to hold; default: the workload's.")
@click.option("--policy", type=click.Path(path_type=Path), metavar="FILE", help="Default: the in-tree plugins.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An API server without nodes, filled and emptied; default: the embedded one, in a process of its own.",
)
@click.option(
    "--beside",
    metavar="COMMAND",
    help="Measure another scheduler in turn with ours: kube-scheduler --kubeconfig {kubeconfig} …",
)
@click.option("--limit/--no-limit", "with_limit", default=True, help="Measure the client that decides nothing, too.")
@click.option("--runs", type=click.IntRange(1, 99), default=1, show_default=True, help="Runs; medians are told.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Keep the results in FILE.")
@click.option("--compare", type=click.Path(path_type=Path), metavar="FILE", help="Compare ratios with those in FILE.")
@click.option(
    "--threshold", type=click.FloatRange(0), default=0.25, show_default=True, help="Growth of a ratio that is too much."
)
@click.option("--from", "source", type=click.Path(path_type=Path), metavar="FILE", help="Results `bench page` shows.")
def bench(
    what: str,
    workload: str | None,
    nodes: int | None,
    pods: int | None,
    policy: Path | None,
    kubeconfig: Path | None,
    beside: str | None,
    with_limit: bool,
    runs: int,
    output: str,
    save: Path | None,
    compare: Path | None,
    threshold: float,
    source: Path | None,
) -> None:
    """Measure a workload end to end, or a part alone.

    \b
    WORKLOAD              an API server and the scheduler, each in a process of its own
    limit [WORKLOAD]      a client that decides nothing in the scheduler's place
    decisions [WORKLOAD]  the core without a server: CPU of a decision and of an event
    memory [WORKLOAD]     what holding the workload's nodes and pods takes
    language              lint, compile, one filter over every node
    queue                 the queue at 100,000 pods; refused pods in the way; a gang of 1,000
    server                the embedded API server on one core: start, memory, bindings and watch events a second
    extender              the extender on one core: names at 200 requests a second, whole node objects
    page --from FILE      docs/performance.md, from saved results

    Workloads: peer-basic, -mixed, -spread, -affinity, -antiaffinity, -nodeaffinity as kube-scheduler was measured
    with, and those of Kubernetes' scheduler_perf by name (SchedulingBasic, TopologySpreading, …).

    Exit codes: 0 measured; 1 a ratio grew by more than --threshold; 2 unusable input; 3 server unreachable.
    """
    if what == "page":
        _page(source)
        return
    asked = _asked(what, workload, nodes, pods, policy, kubeconfig, beside, with_limit, runs)
    record = _measure(what, asked)
    _tell(record, output)
    worse = compare is not None and _compare(compare, record, threshold, output)
    if save is not None:
        _save(save, record)
    if worse:
        sys.exit(WORSE)


def _asked(
    what: str,
    name: str | None,
    nodes: int | None,
    pods: int | None,
    policy: Path | None,
    kubeconfig: Path | None,
    beside: str | None,
    with_limit: bool,
    runs: int,
) -> Asked:
    from policyengine.simulator.workloads_perf import WORKLOADS

    if what not in ALONE and name is not None:
        raise click.UsageError(f"`{what}` takes no second workload")
    chosen = name or (DEFAULT_WORKLOAD if what in ALONE else what)
    if chosen not in WORKLOADS:
        known = ", ".join((*ALONE, *WORKLOADS) if what not in ALONE else WORKLOADS)
        raise click.UsageError(f"there is no workload `{chosen}`; choose one of {known}")
    workload = WORKLOADS[chosen].sized(nodes, pods)
    profile, text = _policy(policy, workload)
    words = ["policyengine bench", what, *([name] if name else [])]
    given = {"--nodes": nodes, "--pods": pods, "--policy": policy, "--beside": beside and f'"{beside}"'}
    words += [f"{option} {value}" for option, value in given.items() if value is not None]
    words += ["--kubeconfig FILE"] * (kubeconfig is not None) + [f"--runs {runs}"] * (runs > 1)
    return Asked(workload, profile, text, policy, kubeconfig, beside, with_limit, runs, " ".join(words))


def _policy(path: Path | None, workload: Workload) -> tuple[Profile, str]:
    """The profile that decides, and its text; the in-tree plugins have none."""
    from policyengine.catalogue import compile_policy
    from policyengine.commands.policies import load_profiles
    from policyengine.plugins.registry import default_profile

    if path is not None:
        profiles = load_profiles([path])
        if len(profiles) != 1:
            raise BenchError(f"`{path}` holds {len(profiles)} policies; a benchmark is of one")
        return profiles[0], path.read_text(encoding="utf-8")
    if workload.policy:
        return compile_policy(workload.policy), workload.policy
    return default_profile(), ""


def _measure(what: str, asked: Asked) -> Record:
    from policyengine.simulator.benchmark import measure
    from policyengine.simulator.benchmark.audit import WrongDecision
    from policyengine.simulator.benchmark.cluster import NotOurs
    from policyengine.simulator.benchmark.machine import this_machine
    from policyengine.simulator.benchmark.processes import ChildFailed

    machine = this_machine()
    try:
        if what == "language":
            from policyengine.simulator.benchmark.language import language

            return measure.alone_record(language(), "", asked.command, machine)
        if what == "queue":
            from policyengine.simulator.benchmark.queue import queue

            return measure.alone_record(queue(), "", asked.command, machine)
        if what == "server":
            import asyncio

            from policyengine.simulator.benchmark.server import server

            return measure.alone_record(asyncio.run(server(runs=asked.runs)), "", asked.command, machine)
        if what == "extender":
            import asyncio

            from policyengine.simulator.benchmark.extender import extender

            found = asyncio.run(extender(asked.workload.nodes))
            return measure.alone_record(found, f"{found.nodes}", asked.command, machine)
        if what in ("decisions", "memory"):
            from policyengine.simulator.benchmark import decisions

            work = decisions.decisions if what == "decisions" else decisions.memory
            return measure.alone_record(work(asked.workload, asked.profile), asked.size, asked.command, machine)
        return _end_to_end(what, asked)
    except (ChildFailed, NotOurs) as error:
        raise BenchError(str(error)) from None
    except WrongDecision as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(WORSE)


def _end_to_end(what: str, asked: Asked) -> Record:
    import asyncio
    import signal

    from policyengine.simulator.benchmark import measure
    from policyengine.simulator.benchmark.end_to_end import Contestant, EndToEndFigures
    from policyengine.simulator.benchmark.machine import this_machine

    machine = this_machine()
    contestants: list[Contestant] = []
    if what != "limit":
        contestants.append(Contestant(OURS, asked.profile.scheduler_name, asked.policy_text))
        if asked.beside:
            contestants.append(Contestant(asked.beside.split()[0].rpartition("/")[2], command=asked.beside))
    if what == "limit" or asked.with_limit:
        contestants += measure.LIMITS if what == "limit" else measure.LIMITS[1:]

    def report(run: EndToEndFigures) -> None:
        told = f"{run.contestant}: {run.bound:,} of {run.pods:,} bound, {run.binds_per_second:,.0f} a second"
        click.echo(told + (f"; it said: {run.last_words}" if run.bound < run.pods else ""), err=True)

    # As Ctrl-C does: every process that was started ends before this one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if asked.kubeconfig is not None:
        asyncio.run(_reach(asked.kubeconfig))
    found = asyncio.run(measure.runs(asked.workload, contestants, asked.kubeconfig, asked.runs, report))
    return measure.end_to_end_record(found, OURS, asked.profile.name, asked.command, machine)


async def _reach(kubeconfig: Path) -> None:
    """Raises `Unreachable` or `AccessDenied`, which have exit codes of their own."""
    from policyengine.kube import config
    from policyengine.kube.access import check_access
    from policyengine.kube.client import Client

    server = config.load(kubeconfig)
    client = Client(server.connect())
    try:
        await check_access(client, server.url, server.source)
    finally:
        await client.close()


def _tell(record: Record, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(record.to_json(), indent=2))
        return
    from policyengine.commands.bench_table import show

    show(record)


def _compare(path: Path, record: Record, threshold: float, output: str) -> bool:
    """Show the differences (on standard error beside JSON); whether one is too large."""
    from policyengine.commands.bench_table import show_differences
    from policyengine.simulator.benchmark import records

    try:
        differences = records.compare(records.load(path), [record])
    except (records.UnusableRecords, records.NothingToCompare) as error:
        raise BenchError(str(error)) from None
    show_differences(differences, threshold, stderr=output == "json")
    return any(one.growth > threshold for one in differences)


def _save(path: Path, record: Record) -> None:
    from policyengine.simulator.benchmark import records

    try:
        records.save(path, [record])
    except records.UnusableRecords as error:
        raise BenchError(str(error)) from None


def _page(source: Path | None) -> None:
    from policyengine.simulator.benchmark import records
    from policyengine.simulator.benchmark.page import page

    if source is None:
        raise click.UsageError("`bench page` needs --from FILE, a file of `bench … --save FILE`")
    try:
        found: Sequence[Record] = records.load(source)
    except records.UnusableRecords as error:
        raise BenchError(str(error)) from None
    click.echo(page(found), nl=False)
