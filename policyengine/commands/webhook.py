"""`policyengine webhook`: refuses a broken policy at `kubectl apply`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from policyengine.clock import SystemClock
from policyengine.commands import options


@click.command()
@click.option("--listen", default=":8443", metavar="[HOST]:PORT", help="On loopback without a host.")
@options.port_options
@click.option(
    "--tls-secret",
    metavar="NAMESPACE/NAME",
    help="Instead of a certificate: make one, keep it in this Secret, and renew it.",
)
@click.option("--service", default="policyengine-webhook", metavar="NAME", help="Whom that certificate names.")
@click.option(
    "--webhook-configuration",
    default="policyengine",
    metavar="NAME",
    help="The ValidatingWebhookConfiguration that is told to trust it.",
)
@click.option(
    "--policy-cpu-limit",
    type=options.Duration(),
    default="2s",
    help="CPU time for compiling and testing a ConfigMap; one that takes more is refused.",
)
@options.file_option(
    "--config", help="The scheduler's configuration: its policies.allow and lintFailLevel hold here too."
)
@options.file_option(
    "--kubeconfig", help="With --tls-secret: the cluster; default: $KUBECONFIG, or the one this pod is in."
)
@options.context_option
def webhook(
    listen: str,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
    client_names: tuple[str, ...],
    tls_secret: str | None,
    service: str,
    webhook_configuration: str,
    policy_cpu_limit: float,
    config: Path | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Review SchedulingPolicies and ConfigMaps that carry policies, as a ValidatingWebhookConfiguration asks.

    It answers POST /validate.

    A policy is refused with the line and column of its first error, or of the expectation that failed in its tests.
    Also /healthz and /metrics.
    """
    host, port = options.host_and_port("--listen", listen, example=8443)
    if (tls_cert_file is None) is (tls_secret is None):
        raise click.UsageError("either --tls-cert-file or --tls-secret says where the certificate comes from")
    if client_names and client_ca_file is None:
        raise click.UsageError("--client-name needs --client-ca-file")
    files = None
    if tls_cert_file is not None:
        files = options.port_certificate(tls_cert_file, tls_private_key_file, client_ca_file)
    from policyengine.commands.cluster_client import connected, stop_on_signals, unless_stopped
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.config import configuration, credentials, process
    from policyengine.kube.policies.proving import Prover
    from policyengine.language.diagnostics import Severity
    from policyengine.server.certificate import CertificateUnusable
    from policyengine.server.managed_certificate import CertificateStore, managed
    from policyengine.server.webhook import serve

    given = configuration.load(config, {}).data["policies"]

    secret = None
    if tls_secret is not None:
        namespace, separator, name = tls_secret.partition("/")
        if not (namespace and separator and name):
            raise click.UsageError(f"--tls-secret is `{tls_secret}`; write NAMESPACE/NAME")
        secret = credentials.load(kubeconfig, context), namespace, name, service, webhook_configuration
    process.start_logging()
    fail_level = Severity(given["lintFailLevel"])
    prover = Prover(installed_registry, policy_cpu_limit, fail_level, allow=given["allow"])

    async def review() -> None:
        """With a certificate in files, else with one that is made and kept in the Secret."""
        stop = stop_on_signals()
        if secret is None:
            assert files is not None
            await serve(prover.problem, host, port, files, stop, client_names)
            return
        server, *where = secret
        async with connected(server, check=False) as client:
            making = managed(CertificateStore(client, SystemClock(), *where), client_ca_file)
            try:
                made = await unless_stopped(stop, making)
            except CertificateUnusable as error:
                raise options.UnusableInput(str(error)) from None
            if made is not None:
                await serve(prover.problem, host, port, made, stop, client_names)

    with closing(prover):
        process.run(review())
