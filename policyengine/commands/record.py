"""`policyengine record`: what happens in a cluster, whoever schedules it, written down."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import click

from policyengine.clock import SystemClock
from policyengine.commands.options import Duration, UnusableInput, cluster_options, redact_options, redaction_of


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY")
@cluster_options("Default: $KUBECONFIG, ~/.kube/config, or the service account of the pod this runs in.")
@click.option("--for", "seconds", type=Duration(), metavar="DURATION", help="End after so long.")
@redact_options
def record(
    directory: Path,
    kubeconfig: Path | None,
    context: str | None,
    seconds: float | None,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Watch a cluster until Ctrl-C, and write what happens into DIRECTORY: nodes, pods and what else scheduling reads,
    as they come, change and go, and who is bound where. Nothing is changed in the cluster.

    It needs the right to list and watch these kinds, and says which it is refused.

    Exit codes: 0; 2 the directory cannot be written to, from the start or later, or not every kind could be listed; 3
    the server does not answer.
    """
    from policyengine.commands.cluster_client import connected, stop_on_signals
    from policyengine.kube.config import credentials, process
    from policyengine.kube.record_writer import RecordWriter, watch_cluster
    from policyengine.recording.directory import Limits

    async def watch() -> None:
        clock, random, stop = SystemClock(), Random(), stop_on_signals()
        async with connected(server) as client:
            writer = RecordWriter(directory, Limits(), clock, random, redaction)
            click.echo(f"recording {server.url} into {directory}; Ctrl-C ends it")
            watching = asyncio.create_task(watch_cluster(client, clock, random, writer, stop))
            full = asyncio.create_task(writer.ended.wait())
            await asyncio.wait({watching, full}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            stop.set()
            has_listed = await watching
            full.cancel()
            if writer.ended.is_set():
                raise UnusableInput(f"nothing more can be recorded into `{directory}`: see the warning")
            if not has_listed:
                raise UnusableInput(
                    f"not every kind could be listed, so `{directory}` does not say what was there at first"
                )

    redaction = redaction_of(redact, redact_key)
    server = credentials.load(kubeconfig, context)
    process.start_logging("info")
    process.run(watch())
