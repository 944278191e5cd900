"""`policyengine web`: pages to look at, without a scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click

from policyengine.clock import SystemClock
from policyengine.commands.options import UnusableInput, cannot_read, cluster_options, file_option, policy_option
from policyengine.commands.policies import load_profiles
from policyengine.commands.progress import progress

if TYPE_CHECKING:
    from policyengine.kube.config.credentials import Server
    from policyengine.server.pages.playground.page import Playground
    from policyengine.server.pages.source import Source

SHUTDOWN = 0.2
MOST_CONNECTIONS = 256


@click.command()
@click.option("--recording", type=click.Path(path_type=Path), metavar="RECORDING", help="A directory, or one file.")
@file_option("--cluster", "dump", help="A file as `explain --cluster` reads.")
@cluster_options("A cluster, which is watched; default, without the others: as for kubectl.")
@policy_option(" Instead of those of the cluster; with --recording beside what was recorded.")
@click.option("--port", type=click.IntRange(0, 65535), default=8770, help="On loopback; 0 is any.")
def web(
    recording: Path | None,
    dump: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    paths: tuple[Path, ...],
    port: int,
) -> None:
    """Serve pages to look at, on this machine alone, until Ctrl-C: nodes, pods and why they wait, policies; of a
    cluster, a file or a recording. They change nothing.

    Exit codes: 0; 2 what is to be shown cannot be read, or the port is taken; 3 the cluster does not answer.
    """
    from policyengine.kube.config import credentials, process

    if sum(one is not None for one in (recording, dump, kubeconfig or context)) > 1:
        raise click.UsageError("name one thing to be shown: --recording, --cluster or --kubeconfig")
    server = credentials.load(kubeconfig, context) if recording is None and dump is None else None
    process.start_logging("warning")
    process.run(_serve(recording, dump, server, paths, port))


async def _serve(
    recording: Path | None, dump: Path | None, server: Server | None, paths: tuple[Path, ...], port: int
) -> None:
    from aiohttp import web as http

    from policyengine.commands.cluster_client import stop_on_signals
    from policyengine.server.listening import CannotListen, listening
    from policyengine.server.pages.site import Site

    stop = stop_on_signals()
    async with _sources(recording, dump, server, paths) as (source, other):
        application = http.Application()
        Site(source, SystemClock(), other=other, playground=playground()).add_to(application)
        try:
            async with listening(application, f"127.0.0.1:{port}", None, MOST_CONNECTIONS, SHUTDOWN) as served:
                click.echo(f"look at http://127.0.0.1:{served}/\nCtrl-C ends it.")
                await stop.wait()
        except CannotListen:
            raise UnusableInput(f"port {port} on 127.0.0.1 cannot be had; choose another: --port") from None


def playground() -> Playground:
    """What policies are tried in."""
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.commands.lsp import toolchain
    from policyengine.server.pages.playground.page import Playground

    return Playground(installed_registry, toolchain)


@asynccontextmanager
async def _sources(
    recording: Path | None, dump: Path | None, server: Server | None, paths: tuple[Path, ...]
) -> AsyncIterator[tuple[Source, Source | None]]:
    """What is shown, and what that is compared with: a recording under the policies that were named."""
    from policyengine.commands.cluster_client import connected
    from policyengine.commands.explaining.explained_cluster import from_file
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.config.access import Unreachable
    from policyengine.kube.http.client import ApiError, ConnectionFailed
    from policyengine.server.pages.recorded import RecordedSource, ReplannedSource
    from policyengine.server.pages.source import dumped
    from policyengine.server.pages.watched import watched

    given = load_profiles(paths)
    if recording is not None:
        try:
            with progress("reading the recording"):
                recorded = RecordedSource(recording, installed_registry())
                other = ReplannedSource(recording, installed_registry(), given) if given else None
        except OSError as error:
            raise cannot_read(recording, error) from None
        yield recorded, other
    elif dump is not None:
        cluster, now = from_file(dump, given if paths else None), SystemClock().now()
        with progress(f"playing {len(cluster.waiting)} pods that wait"):
            still = dumped(f"cluster in {dump.name}", cluster.objects, cluster.profiles, cluster.notes, now)
        yield still, None
    elif server is not None:
        title = f"cluster of {server.source}"
        async with connected(server) as client:
            try:
                async with watched(client, title, installed_registry(), SystemClock(), Random(), given) as source:
                    yield source, None
            except (ApiError, ConnectionFailed) as error:
                raise Unreachable(f"the policies of `{server.url}` cannot be listed: {error}") from None
