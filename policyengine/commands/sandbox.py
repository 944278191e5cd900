"""`policyengine sandbox`: an API server, nodes, a stand-in kubelet and the scheduler in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import click

from policyengine.cluster.kinds import NODES
from policyengine.commands import options
from policyengine.commands.policies import load_profiles

if TYPE_CHECKING:
    from policyengine.clock import Clock
    from policyengine.framework.profile import Profile
    from policyengine.kube.http.client import Transport
    from policyengine.kube.policies.precedence import Compile
    from policyengine.kube.scheduling import Scheduler

LEADING: dict[str, dict[str, Any]] = {
    "leaderElection": {
        "resourceName": "policyengine-sandbox",
        "leaseDuration": "24h",
        "renewDeadline": "23h",
        "retryPeriod": "10s",
    }
}
"""A Lease of its own, so that a `run` beside it has its own too; it outlasts a laptop that sleeps."""


MOST_NODES = 5000


def _number_or_file(_context: click.Context, _option: click.Parameter, written: str | None) -> int | Path | None:
    """How many nodes of one size, or a file of Node manifests."""
    if written is None:
        return None
    if not written.lstrip("-").isdecimal():
        return Path(written)
    number = int(written[:9])
    if not 0 <= number <= MOST_NODES:
        raise click.BadParameter(f"{written} is not in the range 0<=x<={MOST_NODES}.")
    return number


@click.command()
@click.option(
    "--nodes",
    callback=_number_or_file,
    metavar="N|FILE",
    help="So many of 4 cpu and 16Gi each, or a file of Node manifests.  [default: 3; 0 with --cluster]",
)
@options.file_option("--cluster", "dump", help="What is there from the start: a file as `explain --cluster` reads.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
    help="Port of the API server; default: any free one.",
)
@options.policy_option()
@click.option(
    "--kubeconfig-out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("sandbox.kubeconfig"),
    metavar="FILE",
)
@click.option(
    "--apiserver",
    type=click.Choice(("embedded", "envtest")),
    default="embedded",
    help="envtest: the real etcd and kube-apiserver in $KUBEBUILDER_ASSETS.",
)
@options.recording_options
@options.param_option
@click.option("-v", "--verbose", is_flag=True, help="Say more about what happens.")
def sandbox(
    nodes: int | Path | None,
    dump: Path | None,
    port: int,
    paths: tuple[Path, ...],
    kubeconfig_out: Path,
    apiserver: Literal["embedded", "envtest"],
    record_path: Path | None,
    redact: bool,
    redact_key: Path | None,
    params: dict[str, str],
    verbose: bool,
) -> None:
    """Run a small cluster without machines, until Ctrl-C, and write a kubeconfig for your own kubectl.

    Policies come from --policy, and in kube-system from SchedulingPolicies and from ConfigMaps labelled
    policyengine.io/policy=true. Pods without a schedulerName are placed as kube-scheduler would.
    """
    from policyengine.commands.cluster_client import stop_on_signals
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.config import process
    from policyengine.kube.policies.proving import Prover
    from policyengine.simulator import sandbox as simulator

    options.recorded_redaction(record_path, redact, redact_key)
    profiles = load_profiles(paths, params, run_tests=True)
    recording = {"directory": str(record_path or ""), "redact": redact, "redactKeyFile": str(redact_key or "")}
    start = _start(nodes, dump)
    number = nodes if isinstance(nodes, int) else 3 if nodes is None and dump is None else 0

    async def serve() -> None:
        stop = stop_on_signals()
        async with simulator.world(apiserver, port) as world:
            try:
                simulator.write_kubeconfig(kubeconfig_out, world.kubeconfig)
            except OSError as error:
                raise options.cannot_write(kubeconfig_out, error) from None
            with closing(Prover(installed_registry)) as prover:
                scheduling = partial(_with_pages, prover.compiled, recording)
                async with simulator.sandbox(world, number, profiles, scheduling=scheduling, start=start) as running:
                    elector = running.scheduler.elector
                    pages = (elector.pages if elector else None) or ""
                    there = number + sum(path == NODES.path() for path, _ in start)
                    click.echo(_welcome(world.url, pages, kubeconfig_out, there, profiles))
                    await stop.wait()

    process.start_logging("debug" if verbose else "info")
    process.run(serve())


def _start(nodes: int | Path | None, dump: Path | None) -> list[tuple[str, dict[str, Any]]]:
    """What is there besides nodes of one size: nodes of a file, and what a dump holds."""
    from policyengine.commands.explaining.explained_cluster import read_cluster
    from policyengine.diagnosis.dump import ClusterShapeError
    from policyengine.simulator.starting_cluster import of_cluster, of_nodes

    found: list[tuple[str, dict[str, Any]]] = []
    for path, read in ((nodes, of_nodes), (dump, of_cluster)):
        if isinstance(path, Path):
            try:
                found += read(read_cluster(path))
            except ClusterShapeError as error:
                raise options.UnusableInput(f"`{path}`: {error}") from None
    return found


@asynccontextmanager
async def _with_pages(
    compile_files: Compile, recording: dict[str, Any], transport: Transport, clock: Clock, profiles: Sequence[Profile]
) -> AsyncIterator[Scheduler]:
    """A scheduler as `run` has it: with metrics and pages on loopback, and a Lease that says where they are."""
    from policyengine.commands.web import playground
    from policyengine.kube.config import configuration
    from policyengine.kube.http.client import Client
    from policyengine.kube.leader import LeaderElector, new_identity
    from policyengine.kube.leaders_transport import LeadersTransport
    from policyengine.server.live import Connection, live
    from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics

    random, direct = Random(), Client(transport)
    given = configuration.load(None, LEADING | {"endpoints": {"address": "127.0.0.1:0"}, "recording": recording})
    assert given.lease is not None
    elector = LeaderElector(direct, clock, random, new_identity("sandbox", random), given.lease)
    connection = Connection(Client(LeadersTransport(transport, elector)), direct, elector, SchedulerMetrics())
    async with live(connection, given, clock, random, profiles, compile_files, playground()) as scheduler:
        yield scheduler


def _welcome(url: str, pages: str, out: Path, nodes: int, profiles: list[Profile]) -> str:
    names = ", ".join(f"{profile.scheduler_name} (policy {profile.name})" for profile in profiles)
    return "\n".join(
        (
            f"API server  {url}",
            f"look at     {pages}/",
            f"pages       {pages}/metrics, …/debug/queue",
            f"nodes       {nodes}",
            f"schedulers  {names or 'default-scheduler only; give --policy, or apply a ConfigMap'}",
            f"try         kubectl --kubeconfig {out} get nodes",
            f"            policyengine explain --kubeconfig {out}",
            "Ctrl-C ends it.",
        )
    )
