"""`policyengine rewards`: learn on which nodes which pods fare well, and write it where policies read it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click

from policyengine.commands.options import Duration, cluster_options

if TYPE_CHECKING:
    from policyengine.kube.config.credentials import Server
    from policyengine.kube.http.client import Client
    from policyengine.kube.stores import Store
    from policyengine.server.rewards.monitor import Settings


@click.command()
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("rewards.sqlite"),
    show_default=True,
    metavar="FILE",
    help="SQLite file in which what was learnt outlives the process.",
)
@click.option("--state-configmap", "configmap", metavar="NS/NAME", help="A ConfigMap instead, for several replicas.")
@click.option("--half-life", type=Duration(), default="1h", show_default=True, help="Of what was experienced.")
@click.option("--patience", type=Duration(), default="5m", show_default=True, help="A bound pod is to start within.")
@click.option("--interval", type=Duration(), default="10s", show_default=True, help="Between two rounds of writing.")
@cluster_options("Default: as kubectl, or in-cluster.")
def rewards(
    state: Path,
    configmap: str | None,
    half_life: float,
    patience: float,
    interval: float,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Turn what pods experience on nodes (crashes, restarts, lateness, run times) into a reward from 0 to 1.

    It is written to the nodes' annotations rewards.policyengine.io/GROUP, where policies/rewards.policy reads it.
    """
    if configmap is not None and configmap.count("/") != 1:
        raise click.UsageError(f"--state-configmap is `{configmap}`; it is NAMESPACE/NAME")
    from policyengine.kube.config import credentials, process
    from policyengine.server.rewards.monitor import Settings

    process.start_logging()
    settings = Settings(half_life, patience, interval)
    process.run(_learn(credentials.load(kubeconfig, context), state, configmap, settings))


async def _learn(server: Server, state: Path, configmap: str | None, settings: Settings) -> None:
    from policyengine.clock import SystemClock
    from policyengine.commands.cluster_client import connected, stop_on_signals
    from policyengine.server.rewards.monitor import Monitor

    stop = stop_on_signals()
    async with connected(server, check=False) as client:
        with closing(_store(client, state, configmap)) as store:
            await Monitor(client, store, SystemClock(), Random(), settings).run(stop)


def _store(client: Client, state: Path, configmap: str | None) -> Store:
    from policyengine.kube.stores import ConfigMapStore, SqliteStore
    from policyengine.server.rewards.monitor import KEY

    if configmap is None:
        return SqliteStore(state)
    namespace, _, name = configmap.partition("/")
    return ConfigMapStore(client, namespace, name, KEY)
