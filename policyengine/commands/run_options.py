"""The flags of `policyengine run`, each a field of its configuration file; a flag beats the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine.commands import options

if TYPE_CHECKING:
    from policyengine.kube.config.configuration import Configuration

_FIELDS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "kube/config/configuration.schema.json").read_text(encoding="utf-8")
)["$defs"]
"""Section -> its form, as `configuration.schema` has it, which takes longer to import than `--help` to print."""

FLAGS: tuple[tuple[str, str, str], ...] = (
    (
        "clientConnection_kubeconfig",
        "--kubeconfig FILE",
        "Default: $KUBECONFIG, ~/.kube/config, or the service account of the pod this runs in.",
    ),
    ("clientConnection_context", "--context NAME", "Context of the kubeconfig; default: its current one."),
    (
        "policies_files",
        "--policy PATH",
        "A policy file, or a folder of them; may be repeated. A ConfigMap for the same scheduler name goes first.",
    ),
    ("policies_selector", "--policy-selector LABELS", "ConfigMaps that hold policies, in keys that end in .policy."),
    ("policies_namespace", "-n --namespace NAME", "Where those ConfigMaps are."),
    (
        "policies_lintFailLevel",
        "--lint-fail-level",
        "The least severity of an opinion of lint's that has such a ConfigMap rejected.",
    ),
    (
        "policies_notices",
        "--notices/--no-notices",
        "Whether Events tell of pods that nobody serves, and of policies that nobody reads.",
    ),
    (
        "policies_cpuLimit",
        "--policy-cpu-limit",
        "CPU time for compiling and testing such a ConfigMap; one that takes more is rejected.",
    ),
    (
        "leaderElection_leaderElect",
        "--leader-elect/--no-leader-elect",
        "Whether to wait for a lease, so that of several replicas one binds.",
    ),
    (
        "leaderElection_leaseDuration",
        "--leader-elect-lease-duration",
        "Without a renewal for so long another replica takes over.",
    ),
    ("leaderElection_renewDeadline", "--leader-elect-renew-deadline", "Without a renewal for so long the leader ends."),
    ("leaderElection_retryPeriod", "--leader-elect-retry-period", "Between two tries."),
    (
        "leaderElection_resourceName",
        "--leader-elect-resource-name NAME",
        "The Lease's name; another one for every installation.",
    ),
    ("leaderElection_resourceNamespace", "--leader-elect-resource-namespace NAME", "The Lease's namespace."),
    ("clientConnection_qps", "--kube-api-qps", "Requests a second to the API server; 0 for no limit."),
    ("clientConnection_burst", "--kube-api-burst", "Requests that may go out at once where they are limited."),
    ("clientConnection_requestTimeout", "--request-timeout", "For one request."),
    ("clientConnection_connections", "--connections", "At most."),
    ("endpoints_address", "--listen [HOST]:PORT", 'Metrics, health and debug pages; "" for none.'),
    ("endpoints_tlsCertFile", "--tls-cert-file FILE", "Serve them over HTTPS with this."),
    ("endpoints_tlsPrivateKeyFile", "--tls-private-key-file FILE", "Its key."),
    ("endpoints_clientCAFile", "--client-ca-file FILE", options.CLIENT_CA_HELP),
    ("endpoints_clientNames", "--client-name NAME", options.CLIENT_NAME_HELP),
    ("endpoints_authentication", "--authentication", options.AUTHENTICATION_HELP),
    ("endpoints_debug", "--debug/--no-debug", "Whether there is /debug."),
    (
        "binding_verify",
        "--verify-bindings/--no-verify-bindings",
        "Whether a node's pods are read after each binding, and a pod that does not fit beside what another scheduler "
        "bound meanwhile is evicted before it starts.",
    ),
    ("log_format", "--log-format", ""),
    (
        "tracing_endpoint",
        "--tracing-endpoint URL",
        "Send OpenTelemetry traces of pods to this collector (OTLP over HTTP), such as http://localhost:4318.",
    ),
    ("tracing_samplingRatePerMillion", "--tracing-sampling-rate-per-million", "Of so many of a million attempts."),
    (
        "policies_history",
        "--history-configmap NS/NAME",
        "A ConfigMap that keeps what policies learn by `history` across restarts.",
    ),
    (
        "recording_directory",
        "--record DIRECTORY",
        "Write what the scheduler is told and does into this directory, for `policyengine replay`.",
    ),
    (
        "recording_redact",
        "--redact/--no-redact",
        "Whether that hides who runs what: hashes for names, images, label values.",
    ),
    ("recording_redactKeyFile", "--redact-key FILE", "The hashes' key; without it a random one that nobody keeps."),
    ("log_level", "--log-level", "The least that is said."),
)
"""`SECTION_field` of the configuration, flags with what stands for a text, help; in the order of the help."""


def _option(name: str, flags: str, help: str) -> Callable[[options.Command], options.Command]:
    """A flag that takes what its field does, and tells the field's default."""
    section, _, field = name.partition("_")
    form = _FIELDS[section]["properties"][field]
    names = [one for one in flags.split() if one.startswith("-")]
    default, more = form["default"], dict[str, Any](metavar="".join(flags.split()[len(names) :]) or None)
    if isinstance(default, bool):
        default, more["default"] = names[0].split("/")[0 if default else 1].removeprefix("--"), None
    elif isinstance(default, list):
        more["multiple"] = True
    elif "enum" in form:
        more["type"] = click.Choice(form["enum"])
    elif isinstance(default, int):
        more |= {"metavar": "N", "type": float if form["type"] == "number" else int}
    elif form.get("$ref") == "#/$defs/duration":
        more["metavar"] = "DURATION"
    told = help if default in ("", []) else f"{help}  [default: {default}]".lstrip()
    return click.option(*names, name, help=told, **more)


def configuration_options(command: options.Command) -> options.Command:
    """Give a command all the flags; what they say is put together by `effective`."""
    config = options.file_option(
        "--config", help="A SchedulerConfiguration of policyengine.io/v1; flags beat what it says."
    )
    verbose = click.option("-v", "--verbose", is_flag=True, help="As --log-level debug.")
    flags = [_option(*one) for one in FLAGS]
    leases = [field for field, *_ in FLAGS].index("leaderElection_leaderElect")
    return options.together(config, *flags[:leases], options.param_option, *flags[leases:], verbose)(command)


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
