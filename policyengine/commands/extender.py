"""`policyengine extender`: a policy's own rules behind a stock kube-scheduler."""

from __future__ import annotations

import logging
import os
from contextlib import nullcontext
from pathlib import Path

import click

from policyengine.clock import SystemClock
from policyengine.commands import options
from policyengine.commands.policies import load_profiles

DEFAULT_PORT = 80
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "NOTICE": 25,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRIT": logging.CRITICAL,
    "CRITICAL": logging.CRITICAL,
    "ALERT": 60,
}
"""`$LOG_LEVEL` -> what `logging` calls it."""


@click.command()
@options.policy_option(" Each policy answers under its name.", required=True)
@options.param_option
@click.option(
    "--listen",
    metavar="[HOST]:PORT",
    help="Default: 127.0.0.1, and the port of $HTTP_PORT or 80. Other machines need a host such as 0.0.0.0.",
)
@options.file_option(
    "--kubeconfig", help="Watch this cluster: kube-scheduler may then send names only (nodeCacheCapable: true)."
)
@click.option(
    "--watch", is_flag=True, help="The same, with $KUBECONFIG, ~/.kube/config or the service account of this pod."
)
@options.context_option
@click.option(
    "--history-configmap",
    "history",
    metavar="NS/NAME",
    help="A ConfigMap that keeps what policies learn by `history` across restarts.",
)
@options.port_options
@click.option(
    "--authentication", type=click.Choice(("None", "TokenReview")), default="None", help=options.AUTHENTICATION_HELP
)
def extender(
    paths: tuple[Path, ...],
    params: dict[str, str],
    listen: str | None,
    kubeconfig: Path | None,
    watch: bool,
    context: str | None,
    history: str | None,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
    client_names: tuple[str, ...],
    authentication: str,
) -> None:
    """Answer kube-scheduler's extender requests: POST /POLICY/filter, prioritize, preempt and bind.

    The rules that the policies themselves write are asked, and plugins of Python packages that they use; the in-tree
    plugins are kube-scheduler's. Also /version, /healthz, /readyz and /metrics. $LOG_LEVEL is TRACE, DEBUG, INFO (the
    default), NOTICE, WARN, ERROR, CRIT or ALERT.
    """
    said = os.environ.get("LOG_LEVEL", "").strip().upper() or "INFO"
    if said not in LEVELS:
        raise click.UsageError(f"$LOG_LEVEL is `{said}`; it is one of {', '.join(LEVELS)}")
    if history is not None and (history.count("/") != 1 or not (kubeconfig or watch)):
        raise click.UsageError("--history-configmap is NAMESPACE/NAME, and needs --kubeconfig or --watch")
    # --listen beats $HTTP_PORT, which beats port 80; on loopback unless a host is given.
    what, where = ("--listen", listen) if listen is not None else ("$HTTP_PORT", os.environ.get("HTTP_PORT", ""))
    host, port = options.host_and_port(what, where, example=8888) if where else (options.LOOPBACK, DEFAULT_PORT)
    # That two serve one scheduler name means nothing here.
    profiles = load_profiles(paths, params, one_a_scheduler=False, run_tests=True)
    names = [profile.name for profile in profiles]
    if twice := [name for name in names if names.count(name) > 1]:
        raise options.UnusableInput(f"two policies are called `{twice[0]}`; each answers under its name, so rename one")
    tls = options.port_certificate(tls_cert_file, tls_private_key_file, client_ca_file)
    if client_names and client_ca_file is None:
        raise click.UsageError("--client-name needs --client-ca-file")
    reviews = authentication == "TokenReview"
    if reviews and (tls is None or not (kubeconfig or watch)):
        raise click.UsageError("--authentication TokenReview needs --tls-cert-file, and --kubeconfig or --watch")
    from policyengine.commands.cluster_client import connected, stop_on_signals
    from policyengine.kube.config import credentials, process
    from policyengine.kube.demand_memory import history_store
    from policyengine.server.callers import Reviewer
    from policyengine.server.extender.app import serve

    async def answer() -> None:
        async with connected(server) if server is not None else nullcontext() as client:
            await serve(
                profiles,
                host,
                port,
                SystemClock(),
                stop_on_signals(),
                client=client,
                tls=tls,
                client_names=client_names,
                reviewer=Reviewer(client) if reviews and client is not None else None,
                beside=process.keep_quiet,
                history=None if client is None else history_store(client, history or ""),
            )

    server = credentials.load(kubeconfig, context) if kubeconfig is not None or watch else None
    process.start_logging()
    logging.addLevelName(LEVELS["TRACE"], "TRACE")
    logging.getLogger("policyengine").setLevel(LEVELS[said])
    process.run(answer())
