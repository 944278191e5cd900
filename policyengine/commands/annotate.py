"""`policyengine annotate`: what nodes really use, from Prometheus or metrics.k8s.io, as annotations of the nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine import regular_file
from policyengine.clock import SystemClock
from policyengine.commands.options import Duration, Number, cluster_options, file_option

if TYPE_CHECKING:
    from policyengine.kube.config.credentials import Server
    from policyengine.kube.http.client import Client
    from policyengine.server.annotator.annotations import Settings
    from policyengine.server.annotator.forecasting import Forecaster
    from policyengine.server.annotator.measurement import Source

FAILED = 1
_LARGEST_TOKEN = 1 << 20


@click.command()
@click.option("--prometheus", metavar="URL", help="Measure by Prometheus, such as http://prometheus.monitoring:9090.")
@click.option("--metrics-server", is_flag=True, help="Measure by metrics.k8s.io of the cluster itself.")
@click.option(
    "--cpu-query", metavar="PROMQL", help="Free cores, one series a node; default: idle time of node_exporter."
)
@click.option("--memory-query", metavar="PROMQL", help="Free bytes; default: node_memory_MemAvailable_bytes.")
@click.option("--congestion-query", metavar="PROMQL", help="Writes `congestion-factor`; default: not asked.")
@click.option("--node-label", "labels", multiple=True, help="Label that names the node; default: node, else instance.")
@click.option("--node-pattern", metavar="RE2", help="What of that label is the node: its first group.")
@file_option("--prometheus-token-file", help="A bearer token.")
@click.option("--window", type=Duration(), default="15m", help="What mean and deviation are over.")
@click.option("--step", type=Duration(), default="30s", help="Between two samples of Prometheus.")
@click.option(
    "--forecast",
    type=Duration(),
    metavar="DURATION",
    help="Writes what is expected to be free so far ahead, by the last day; needs the extra `forecast`.",
)
@click.option("--requested", is_flag=True, help="Writes what the pods on each node ask for, and what that leaves.")
@click.option("--interval", type=Duration(), default="1m", help="Between two rounds.")
@click.option(
    "--tolerance", type=Number(0, 1), default=0.01, help="Changes up to this share of a node's size are not written."
)
@click.option("--refresh", type=Duration(), default="5m", help="Written at least as often.")
@click.option("--stale-after", type=Duration(), default="3m", help="Age at which values are marked.")
@click.option("--remove-after", type=Duration(), default="15m", help="Age at which they are removed.")
@click.option("--once", is_flag=True, help="One round, then end.")
@cluster_options("Default: as kubectl, or in-cluster.")
def annotate(
    kubeconfig: Path | None, context: str | None, interval: float, once: bool, forecast: float | None, **options: Any
) -> None:
    """Write mean, deviation and forecast of what nodes have free, and what they use, to their annotations.

    Exit codes of --once: 0 written; 1 a node could not be written; 2 unusable input, a refused query included;
    3 Prometheus, metrics.k8s.io or the API server unreachable.
    """
    connect, settings = _asked(forecast=forecast is not None, **options)
    from policyengine.kube.config import credentials, process

    process.start_logging()
    server, pause = credentials.load(kubeconfig, context), None if once else interval
    if process.run(_annotate(server, connect, settings, _forecaster(forecast), pause)):
        sys.exit(FAILED)


def _asked(
    prometheus: str | None,
    metrics_server: bool,
    cpu_query: str | None,
    memory_query: str | None,
    congestion_query: str | None,
    labels: tuple[str, ...],
    node_pattern: str | None,
    prometheus_token_file: Path | None,
    window: float,
    step: float,
    tolerance: float,
    refresh: float,
    stale_after: float,
    remove_after: float,
    forecast: bool,
    requested: bool,
) -> tuple[Callable[[Client], Source], Settings]:
    """What makes the source of the measurements, with a client of the API server, and how they are written."""
    from policyengine.server.annotator.annotations import Settings
    from policyengine.server.annotator.measurement import BadPattern, Naming
    from policyengine.server.annotator.measuring import QUERIES, MetricsServer, Prometheus

    if (prometheus is None) is not metrics_server:
        raise click.UsageError("name one source: --prometheus URL or --metrics-server")
    if prometheus is not None and not prometheus.startswith(("http://", "https://")):
        raise click.UsageError(f"--prometheus is `{prometheus}`; it is a URL such as http://prometheus:9090")
    if congestion_query and metrics_server:
        raise click.UsageError("--congestion-query needs --prometheus; metrics.k8s.io knows no queries")
    if remove_after <= stale_after:
        raise click.UsageError("--remove-after is to be longer than --stale-after")
    try:
        naming = Naming(labels or Naming().labels, node_pattern or "")
    except BadPattern as error:
        raise click.UsageError(f"--node-pattern: {error}") from None
    given = {"cpu": cpu_query, "memory": memory_query, "congestion": congestion_query}
    queries = {**QUERIES, **{what: query for what, query in given.items() if query}}
    settings = Settings(tolerance, refresh, stale_after, remove_after, bool(congestion_query), forecast, requested)
    token = _token(prometheus_token_file)
    if prometheus is None:
        return lambda client: MetricsServer(client, window, forecast), settings
    return lambda client: Prometheus(prometheus, queries, naming, window, step, token, forecast), settings


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return regular_file.read(path, _LARGEST_TOKEN).decode().strip()
    except OSError as error:
        raise click.UsageError(f"cannot read `{path}`: {regular_file.reason(error)}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"cannot read `{path}`: it is not UTF-8") from None


async def _annotate(
    server: Server,
    connect: Callable[[Client], Source],
    settings: Settings,
    forecaster: Forecaster | None,
    pause: float | None,
) -> int:
    """How many nodes could not be written in the one round; 0 for the loop of a `pause`, which ends by a signal."""
    from policyengine.commands.cluster_client import connected, stop_on_signals
    from policyengine.server.annotator.annotator import Annotator

    async with connected(server) as client:
        source = connect(client)
        try:
            annotator = Annotator(source, client, SystemClock(), settings, forecaster)
            if pause is not None:
                await annotator.run(stop_on_signals(), pause)
                return 0
            done = await annotator.round()
            click.echo(f"{done.measured} of {done.nodes} nodes measured, {done.written} written")
            return done.failed
        finally:
            await source.close()


def _forecaster(ahead: float | None) -> Forecaster | None:
    from policyengine.server.annotator.forecasting import Forecaster, ForecastUnusable

    try:
        return None if ahead is None else Forecaster(ahead)
    except ForecastUnusable as error:
        raise click.UsageError(f"--forecast: {error}") from None
