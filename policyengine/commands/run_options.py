"""The flags of `policyengine run`, each a field of its configuration file; a flag beats the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from policyengine.commands.policies import param_option

if TYPE_CHECKING:
    from policyengine.kube.config.configuration import Configuration

Command = TypeVar("Command", bound=Callable[..., Any])

_DURATION = "DURATION"


def _text(section: str, field: str, *names: str, metavar: str, help: str, **more: Any) -> Callable[[Command], Command]:
    return click.option(*names, f"{section}_{field}", metavar=metavar, help=help, **more)


OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--config",
        "config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A SchedulerConfiguration of policyengine.io/v1; flags beat what it says.",
    ),
    _text(
        "clientConnection",
        "kubeconfig",
        "--kubeconfig",
        metavar="FILE",
        help="Default: $KUBECONFIG, ~/.kube/config, or the service account of the pod this runs in.",
    ),
    _text(
        "clientConnection",
        "context",
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig; default: its current one.",
    ),
    click.option(
        "--policy",
        "policies_files",
        multiple=True,
        metavar="PATH",
        help="A policy file, or a folder of them; may be repeated. A ConfigMap for the same scheduler name goes first.",
    ),
    _text(
        "policies",
        "selector",
        "--policy-selector",
        metavar="LABELS",
        help="ConfigMaps that hold policies, in keys that end in .policy.  [default: policyengine.io/policy=true]",
    ),
    _text(
        "policies",
        "namespace",
        "-n",
        "--namespace",
        metavar="NAME",
        help="Where those ConfigMaps are.  [default: kube-system]",
    ),
    click.option(
        "--lint-fail-level",
        "policies_lintFailLevel",
        type=click.Choice(("error", "warning", "info")),
        help="The least severity of an opinion of lint's that has such a ConfigMap rejected.  [default: error]",
    ),
    param_option,
    click.option(
        "--leader-elect/--no-leader-elect",
        "leaderElection_leaderElect",
        default=None,
        help="Whether to wait for a lease, so that of several replicas one binds.  [default: leader-elect]",
    ),
    _text(
        "leaderElection",
        "leaseDuration",
        "--leader-elect-lease-duration",
        metavar=_DURATION,
        help="Without a renewal for so long another replica takes over.  [default: 15s]",
    ),
    _text(
        "leaderElection",
        "renewDeadline",
        "--leader-elect-renew-deadline",
        metavar=_DURATION,
        help="Without a renewal for so long the leader ends.  [default: 10s]",
    ),
    _text(
        "leaderElection",
        "retryPeriod",
        "--leader-elect-retry-period",
        metavar=_DURATION,
        help="Between two tries.  [default: 2s]",
    ),
    _text(
        "leaderElection",
        "resourceName",
        "--leader-elect-resource-name",
        metavar="NAME",
        help="The Lease's name; another one for every installation.  [default: policyengine]",
    ),
    _text(
        "leaderElection",
        "resourceNamespace",
        "--leader-elect-resource-namespace",
        metavar="NAME",
        help="The Lease's namespace.  [default: kube-system]",
    ),
    click.option(
        "--kube-api-qps",
        "clientConnection_qps",
        type=float,
        metavar="N",
        help="Requests a second to the API server; 0 for no limit.  [default: 0]",
    ),
    click.option(
        "--kube-api-burst",
        "clientConnection_burst",
        type=int,
        metavar="N",
        help="Requests that may go out at once where they are limited.  [default: 100]",
    ),
    _text(
        "clientConnection",
        "requestTimeout",
        "--request-timeout",
        metavar=_DURATION,
        help="For one request.  [default: 30s]",
    ),
    click.option(
        "--connections", "clientConnection_connections", type=int, metavar="N", help="At most.  [default: 128]"
    ),
    _text(
        "endpoints",
        "address",
        "--listen",
        metavar="[HOST]:PORT",
        help='Metrics, health and debug pages; "" for none.  [default: 127.0.0.1:10259]',
    ),
    _text("endpoints", "tlsCertFile", "--tls-cert-file", metavar="FILE", help="Serve them over HTTPS with this."),
    _text("endpoints", "tlsPrivateKeyFile", "--tls-private-key-file", metavar="FILE", help="Its key."),
    click.option(
        "--authentication",
        "endpoints_authentication",
        type=click.Choice(("None", "TokenReview")),
        help="TokenReview: callers show a bearer token, and need the right to get the path.  [default: None]",
    ),
    click.option(
        "--debug/--no-debug", "endpoints_debug", default=None, help="Whether there is /debug.  [default: debug]"
    ),
    click.option("--log-format", "log_format", type=click.Choice(("text", "json")), help="[default: text]"),
    click.option(
        "--log-level",
        "log_level",
        type=click.Choice(("debug", "info", "warning", "error")),
        help="The least that is said.  [default: info]",
    ),
    click.option("-v", "--verbose", is_flag=True, help="As --log-level debug."),
)


def configuration_options(command: Command) -> Command:
    """Give a command all the flags; what they say is put together by `effective`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def effective(config: Path | None, params: dict[str, str], verbose: bool, fields: dict[str, Any]) -> Configuration:
    """The configuration file with the flags laid over it. Raises `ConfigurationError`."""
    from policyengine.kube.config import configuration

    flags: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        if value is None or value == ():
            continue
        section, _, field = name.partition("_")
        flags.setdefault(section, {})[field] = list(value) if isinstance(value, tuple) else value
    if params:
        flags.setdefault("policies", {})["params"] = dict(params)
    if verbose:
        flags.setdefault("log", {}).setdefault("level", "debug")
    return configuration.load(config, flags)
