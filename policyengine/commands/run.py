"""`policyengine run`: the scheduler on a real cluster."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.kube.config import Server


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Default: $KUBECONFIG, ~/.kube/config, or the service account of the pod this runs in.",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: its current one.")
@click.option(
    "--policy",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="A policy file, or a folder of them; may be repeated. A ConfigMap for the same scheduler name goes first.",
)
@click.option(
    "--policy-selector",
    default="policyengine.io/policy=true",
    show_default=True,
    metavar="LABELS",
    help="Which ConfigMaps hold policies, in their keys that end in .policy.",
)
@click.option("-n", "--namespace", default="kube-system", show_default=True, help="Where those ConfigMaps are.")
@click.option("-v", "--verbose", is_flag=True, help="Say more about what happens.")
def run(
    kubeconfig: Path | None,
    context: str | None,
    paths: tuple[Path, ...],
    policy_selector: str,
    namespace: str,
    verbose: bool,
) -> None:
    """Schedule the pods whose spec.schedulerName a policy serves, until SIGTERM or Ctrl-C.

    Policies come from files and from ConfigMaps, which take effect as they change; the annotation
    policyengine.io/status of a ConfigMap says whether it was accepted.
    """
    from policyengine.commands.policies import load_profiles

    profiles = load_profiles(paths)
    from policyengine.kube import config

    server = config.load(kubeconfig, context)
    log_to_stderr(verbose)
    asyncio.run(_schedule(server, profiles, policy_selector, namespace))


async def _schedule(server: Server, profiles: Sequence[Profile], selector: str, namespace: str) -> None:
    from policyengine.clock import SystemClock
    from policyengine.kube.access import check_access
    from policyengine.kube.client import Client
    from policyengine.kube.scheduling import Scheduler

    client = Client(server.connect())
    try:
        await check_access(client, server.url, server.source)
        scheduler = Scheduler(client, SystemClock(), Random(), profiles, namespace=namespace, label_selector=selector)
        names = ", ".join(f"`{profile.scheduler_name}` by policy `{profile.name}`" for profile in profiles)
        logging.getLogger("policyengine").info(
            "scheduling on %s: %s", server.url, names or f"waiting for a ConfigMap labelled {selector} in {namespace}"
        )
        await scheduler.run(stop_on_signals())
    finally:
        await client.close()


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; a second signal ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(name)

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, end)
    return stop


def log_to_stderr(verbose: bool) -> None:
    """One line a message; other packages speak only of what went wrong."""
    logging.basicConfig(format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING)
    logging.getLogger("policyengine").setLevel(logging.DEBUG if verbose else logging.INFO)
