"""`policyengine run`: the scheduler on a real cluster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from policyengine.clock import SystemClock
from policyengine.commands.policies import load_profiles
from policyengine.commands.run_options import configuration_options, effective

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.kube.config.configuration import Configuration
    from policyengine.kube.config.credentials import Server

NICENESS = 10
"""By how much the proofs of policies give way to the scheduler."""


@click.command()
@configuration_options
def run(config: Path | None, params: dict[str, str], verbose: bool, **fields: Any) -> None:
    """Schedule the pods whose spec.schedulerName a policy serves, until SIGTERM or Ctrl-C.

    Policies come from files and from ConfigMaps, which take effect as they change; the annotation
    policyengine.io/status of a ConfigMap says whether it was accepted. `policyengine config` prints what these flags
    and the file of --config amount to.
    """
    configuration = effective(config, params, verbose, fields)
    policies, client = configuration.data["policies"], configuration.data["clientConnection"]
    profiles = load_profiles([Path(path) for path in policies["files"]], policies["params"], run_tests=True)
    from policyengine.kube.config import credentials, process

    server = credentials.load(Path(client["kubeconfig"]) if client["kubeconfig"] else None, client["context"] or None)
    process.start_logging(configuration.data["log"]["level"], configuration.data["log"]["format"])
    process.run(_schedule(server, profiles, configuration))


async def _schedule(server: Server, profiles: Sequence[Profile], configuration: Configuration) -> None:
    from policyengine.commands.cluster_client import stop_on_signals, unless_stopped
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.config.access import await_access, passing_refusal
    from policyengine.kube.policies.proving import Prover
    from policyengine.language.diagnostics import Severity
    from policyengine.server.live import connected, live

    clock = SystemClock()
    stop = stop_on_signals()
    random = Random()
    async with connected(server, configuration, clock, random) as connection:
        ask = connection.client, server.url, server.source, clock
        refusal = await passing_refusal(*ask)
        given = configuration.data["policies"]
        prover = Prover(
            installed_registry,
            configuration.seconds("policies", "cpuLimit"),
            Severity(given["lintFailLevel"]),
            configuration.data["log"]["format"],
            NICENESS,
            given["allow"],
        )
        with closing(prover):
            async with live(connection, configuration, clock, random, profiles, prover.compiled) as scheduler:
                names = ", ".join(f"`{profile.scheduler_name}` by policy `{profile.name}`" for profile in profiles)
                waiting = f"waiting for a ConfigMap labelled {given['selector']} in {given['namespace']}"
                logging.getLogger("policyengine").info("scheduling on %s: %s", server.url, names or waiting)
                if refusal is not None:
                    await unless_stopped(stop, await_access(*ask, scheduler.waits_for))
                if refusal is None or not stop.is_set():
                    await scheduler.run(stop)
