"""`policyengine web`: pages to look at, without a scheduler."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyengine.commands.options import cannot_read, file_option, policy_option

if TYPE_CHECKING:
    from policyengine.server.pages.playground.page import Playground
    from policyengine.server.pages.source import Source

SHUTDOWN = 0.2
MOST_CONNECTIONS = 256


@click.command()
@click.option("--recording", type=click.Path(path_type=Path), metavar="RECORDING", help="A directory, or one file.")
@file_option("--cluster", "dump", help="A file as `explain --cluster` reads.")
@policy_option(" With --cluster: instead of those in the file.")
@click.option("--port", type=click.IntRange(0, 65535), default=8770, show_default=True, help="On loopback; 0 is any.")
def web(recording: Path | None, dump: Path | None, paths: tuple[Path, ...], port: int) -> None:
    """Serve pages to look at, on this machine alone, until Ctrl-C: nodes, pods and why they wait, policies. They change
    nothing.

    Exit codes: 0; 2 what is to be shown cannot be read, or the port is taken.
    """
    from policyengine.kube.config import process

    if (recording is None) == (dump is None):
        raise click.UsageError("name what is to be shown: --recording or --cluster")
    process.start_logging("warning")
    process.run(_serve(recording, dump, paths, port))


async def _serve(recording: Path | None, dump: Path | None, paths: tuple[Path, ...], port: int) -> None:
    from aiohttp import web as http

    from policyengine.clock import SystemClock
    from policyengine.commands.cluster_client import stop_on_signals
    from policyengine.server.listening import listening
    from policyengine.server.pages.site import Site

    stop = stop_on_signals()
    clock = SystemClock()
    source = await asyncio.to_thread(_recorded, recording) if recording is not None else _dumped(dump, paths)
    application = http.Application()
    Site(source, clock, playground=playground()).add_to(application)
    async with listening(application, f"127.0.0.1:{port}", None, MOST_CONNECTIONS, SHUTDOWN) as served:
        click.echo(f"look at http://127.0.0.1:{served}/\nCtrl-C ends it.")
        await stop.wait()


def playground() -> Playground:
    """What policies are tried in."""
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.commands.lsp import toolchain
    from policyengine.server.pages.playground.page import Playground

    return Playground(installed_registry, toolchain)


def _recorded(path: Path) -> Source:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.commands.progress import progress
    from policyengine.server.pages.recorded import RecordedSource

    try:
        with progress("reading the recording"):
            return RecordedSource(path, installed_registry())
    except OSError as error:
        raise cannot_read(path, error) from None


def _dumped(path: Path | None, paths: tuple[Path, ...]) -> Source:
    from policyengine.clock import SystemClock
    from policyengine.commands.explaining.cluster import from_file
    from policyengine.commands.policies import load_profiles
    from policyengine.commands.progress import progress
    from policyengine.server.pages.dump import dumped

    assert path is not None
    cluster = from_file(path, load_profiles(paths) if paths else None)
    with progress(f"playing {len(cluster.waiting)} pods that wait"):
        return dumped(f"cluster in {path.name}", cluster.objects, cluster.profiles, cluster.notes, SystemClock().now())
