"""`policyengine rewards`: learn on which nodes which pods fare well, and write it where policies read it."""

from __future__ import annotations

import asyncio
from contextlib import closing, nullcontext
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from policyengine.clock import SystemClock
from policyengine.commands.options import Duration, Number, cluster_options
from policyengine.control_characters import escaped

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
    metavar="FILE",
    help="SQLite file in which what was learnt outlives the process.",
)
@click.option("--state-configmap", "configmap", metavar="NS/NAME", help="A ConfigMap instead, for several replicas.")
@click.option(
    "--rate", type=Number(0, 1, min_open=True), default=0.1, help="By how much of the way to a result a reward moves."
)
@click.option("--start", type=Number(0, 1), default=1.0, help="The first reward.")
@click.option(
    "--healthy-every",
    type=Duration(),
    default="1h",
    help="A pod that runs on, all containers ready, is a success each such time.",
)
@click.option(
    "--mean-time-to-failure", type=Duration(), default="10m", help="A restart after this time is worth a half."
)
@click.option("--forget-after", type=Duration(), default="720h", help="What was not heard of for so long.")
@click.option("--shared-groups", "shares_groups", is_flag=True, help="Groups of one name are one in all namespaces.")
@click.option("--patience", type=Duration(), default="5m", help="A bound pod is to start within.")
@click.option("--show", is_flag=True, help="Print what was learnt, totals included, and end.")
@click.option("--interval", type=Duration(), default="10s", help="Between two rounds of writing.")
@cluster_options("Default: as kubectl, or in-cluster.")
def rewards(
    state: Path,
    configmap: str | None,
    patience: float,
    interval: float,
    show: bool,
    kubeconfig: Path | None,
    context: str | None,
    **learning: Any,
) -> None:
    """Turn what pods experience on nodes (crashes, restarts, lateness, run times) into a reward from 0 to 1.

    It is written to the nodes' annotations NAMESPACE.rewards.policyengine.io/GROUP, and policyengine.io/reward for the
    node itself, where policies/rewards.policy reads it.
    """
    if configmap is not None and configmap.count("/") != 1:
        raise click.UsageError(f"--state-configmap is `{configmap}`; it is NAMESPACE/NAME")
    from policyengine.kube.config import credentials, process
    from policyengine.server.rewards.book import Learning
    from policyengine.server.rewards.monitor import Settings

    if show:
        server = None if configmap is None else credentials.load(kubeconfig, context)
        _print(asyncio.run(_read(server, state, configmap)))
        return
    server = credentials.load(kubeconfig, context)
    process.start_logging()
    process.run(_learn(server, state, configmap, Settings(Learning(**learning), patience, interval)))


async def _read(server: Server | None, state: Path, configmap: str | None) -> str | None:
    """What a store holds. Raises `StoreError`."""
    from policyengine.commands.cluster_client import connected

    async with connected(server, check=False) if server is not None else nullcontext() as client:
        with closing(_store(client, state, configmap)) as store:
            return await store.load()


def _print(text: str | None) -> None:
    """Every reward, and the totals. Raises `StoreError`."""
    from policyengine.kube.stores import StoreError
    from policyengine.server.rewards.book import Book, Learning, load

    try:
        book = Book() if text is None else load(text, Learning())
    except ValueError as error:
        raise StoreError(f"what was learnt cannot be read: {error}") from None
    lines = [
        *((group, node, book.pairs[group, node]) for group, node in sorted(book.pairs)),
        *((group, "(all nodes)", book.groups[group]) for group in sorted(book.groups)),
        *(("(all groups)", node, book.nodes[node]) for node in sorted(book.nodes)),
    ]
    if not lines:
        click.echo("nothing was learnt yet")
    wide = [max(map(len, names)) for names in zip(*(line[:2] for line in lines), strict=True)]
    for group, node, reward in lines:
        click.echo(f"{escaped(group):{wide[0]}}  {escaped(node):{wide[1]}}  {reward.value:.3f}")


async def _learn(server: Server, state: Path, configmap: str | None, settings: Settings) -> None:
    from policyengine.commands.cluster_client import connected, stop_on_signals
    from policyengine.server.rewards.monitor import Monitor

    stop = stop_on_signals()
    async with connected(server, check=False) as client:
        with closing(_store(client, state, configmap)) as store:
            await Monitor(client, store, SystemClock(), Random(), settings).run(stop)


def _store(client: Client | None, state: Path, configmap: str | None) -> Store:
    from policyengine.kube.stores import ConfigMapStore, SqliteStore
    from policyengine.server.rewards.monitor import KEY

    if configmap is None or client is None:
        return SqliteStore(state)
    namespace, _, name = configmap.partition("/")
    return ConfigMapStore(client, namespace, name, KEY)
