"""The flags of `policyengine run`, each a field of its configuration file; a flag beats the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine.commands.options import (
    AUTHENTICATION_HELP,
    CLIENT_CA_HELP,
    CLIENT_NAME_HELP,
    Command,
    file_option,
    param_option,
)

if TYPE_CHECKING:
    from policyengine.kube.config.configuration import Configuration

_POLICY_HELP = (
    "A policy file, or a folder of them; may be repeated. A ConfigMap for the same scheduler name goes first."
)
_LEVELS = click.Choice(("debug", "info", "warning", "error"))
_SEVERITIES = click.Choice(("error", "warning", "info"))

FLAGS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "clientConnection_kubeconfig",
        "--kubeconfig",
        "Default: $KUBECONFIG, ~/.kube/config, or the service account of the pod this runs in.",
        {"metavar": "FILE"},
    ),
    (
        "clientConnection_context",
        "--context",
        "Context of the kubeconfig; default: its current one.",
        {"metavar": "NAME"},
    ),
    ("policies_files", "--policy", _POLICY_HELP, {"metavar": "PATH", "multiple": True}),
    (
        "policies_selector",
        "--policy-selector",
        "ConfigMaps that hold policies, in keys that end in .policy.  [default: policyengine.io/policy=true]",
        {"metavar": "LABELS"},
    ),
    (
        "policies_namespace",
        "-n --namespace",
        "Where those ConfigMaps are.  [default: kube-system]",
        {"metavar": "NAME"},
    ),
    (
        "policies_lintFailLevel",
        "--lint-fail-level",
        "The least severity of an opinion of lint's that has such a ConfigMap rejected.  [default: error]",
        {"type": _SEVERITIES},
    ),
    (
        "policies_notices",
        "--notices/--no-notices",
        "Whether Events tell of pods that nobody serves, and of policies that nobody reads.  [default: notices]",
        {"default": None},
    ),
    (
        "policies_cpuLimit",
        "--policy-cpu-limit",
        "CPU time for compiling and testing such a ConfigMap; one that takes more is rejected.  [default: 2s]",
        {"metavar": "DURATION"},
    ),
    (
        "leaderElection_leaderElect",
        "--leader-elect/--no-leader-elect",
        "Whether to wait for a lease, so that of several replicas one binds.  [default: leader-elect]",
        {"default": None},
    ),
    (
        "leaderElection_leaseDuration",
        "--leader-elect-lease-duration",
        "Without a renewal for so long another replica takes over.  [default: 15s]",
        {"metavar": "DURATION"},
    ),
    (
        "leaderElection_renewDeadline",
        "--leader-elect-renew-deadline",
        "Without a renewal for so long the leader ends.  [default: 10s]",
        {"metavar": "DURATION"},
    ),
    (
        "leaderElection_retryPeriod",
        "--leader-elect-retry-period",
        "Between two tries.  [default: 2s]",
        {"metavar": "DURATION"},
    ),
    (
        "leaderElection_resourceName",
        "--leader-elect-resource-name",
        "The Lease's name; another one for every installation.  [default: policyengine]",
        {"metavar": "NAME"},
    ),
    (
        "leaderElection_resourceNamespace",
        "--leader-elect-resource-namespace",
        "The Lease's namespace.  [default: kube-system]",
        {"metavar": "NAME"},
    ),
    (
        "clientConnection_qps",
        "--kube-api-qps",
        "Requests a second to the API server; 0 for no limit.  [default: 0]",
        {"metavar": "N", "type": float},
    ),
    (
        "clientConnection_burst",
        "--kube-api-burst",
        "Requests that may go out at once where they are limited.  [default: 100]",
        {"metavar": "N", "type": int},
    ),
    (
        "clientConnection_requestTimeout",
        "--request-timeout",
        "For one request.  [default: 30s]",
        {"metavar": "DURATION"},
    ),
    ("clientConnection_connections", "--connections", "At most.  [default: 192]", {"metavar": "N", "type": int}),
    (
        "endpoints_address",
        "--listen",
        'Metrics, health and debug pages; "" for none.  [default: 127.0.0.1:10259]',
        {"metavar": "[HOST]:PORT"},
    ),
    ("endpoints_tlsCertFile", "--tls-cert-file", "Serve them over HTTPS with this.", {"metavar": "FILE"}),
    ("endpoints_tlsPrivateKeyFile", "--tls-private-key-file", "Its key.", {"metavar": "FILE"}),
    ("endpoints_clientCAFile", "--client-ca-file", CLIENT_CA_HELP, {"metavar": "FILE"}),
    ("endpoints_clientNames", "--client-name", CLIENT_NAME_HELP, {"metavar": "NAME", "multiple": True}),
    (
        "endpoints_authentication",
        "--authentication",
        AUTHENTICATION_HELP + "  [default: None]",
        {"type": click.Choice(("None", "TokenReview"))},
    ),
    ("endpoints_debug", "--debug/--no-debug", "Whether there is /debug.  [default: debug]", {"default": None}),
    (
        "binding_verify",
        "--verify-bindings/--no-verify-bindings",
        "Whether a node's pods are read after each binding, and a pod that does not fit beside what another scheduler "
        "bound meanwhile is evicted before it starts.  [default: no-verify-bindings]",
        {"default": None},
    ),
    ("log_format", "--log-format", "[default: text]", {"type": click.Choice(("text", "json"))}),
    (
        "tracing_endpoint",
        "--tracing-endpoint",
        "Send OpenTelemetry traces of pods to this collector (OTLP over HTTP), such as http://localhost:4318.",
        {"metavar": "URL"},
    ),
    (
        "tracing_samplingRatePerMillion",
        "--tracing-sampling-rate-per-million",
        "Of so many of a million attempts.  [default: 1000000]",
        {"metavar": "N", "type": int},
    ),
    (
        "policies_history",
        "--history-configmap",
        "A ConfigMap that keeps what policies learn by `history` across restarts.",
        {"metavar": "NS/NAME"},
    ),
    (
        "recording_directory",
        "--record",
        "Write what the scheduler is told and does into this directory, for `policyengine replay`.",
        {"metavar": "DIRECTORY"},
    ),
    (
        "recording_redact",
        "--redact/--no-redact",
        "Whether that hides who runs what: hashes for names, images, label values.  [default: no-redact]",
        {"default": None},
    ),
    (
        "recording_redactKeyFile",
        "--redact-key",
        "The hashes' key; without it a random one that nobody keeps.",
        {"metavar": "FILE"},
    ),
    ("log_level", "--log-level", "The least that is said.  [default: info]", {"type": _LEVELS}),
)
"""`SECTION_field` of the configuration, flags, help, what else click is to know; in the order of the help."""


def configuration_options(command: Command) -> Command:
    """Give a command all the flags; what they say is put together by `effective`."""
    config = file_option("--config", help="A SchedulerConfiguration of policyengine.io/v1; flags beat what it says.")
    verbose = click.option("-v", "--verbose", is_flag=True, help="As --log-level debug.")
    flags = [click.option(*names.split(), field, help=help, **more) for field, names, help, more in FLAGS]
    leases = [field for field, *_ in FLAGS].index("leaderElection_leaderElect")
    for option in reversed([config, *flags[:leases], param_option, *flags[leases:], verbose]):
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
