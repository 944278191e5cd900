"""`policyengine webhook`: refuses a broken policy at `kubectl apply`."""

from __future__ import annotations

from pathlib import Path

import click

from policyengine.commands.options import UnusableInput, file_option, host_and_port


@click.command()
@click.option("--listen", default=":8443", show_default=True, metavar="[HOST]:PORT", help="On loopback without a host.")
@file_option("--tls-cert-file", help="Its certificate; the API server asks over HTTPS only.", required=True)
@file_option("--tls-private-key-file", help="Its key.")
def webhook(listen: str, tls_cert_file: Path, tls_private_key_file: Path | None) -> None:
    """Review ConfigMaps that carry policies, as a ValidatingWebhookConfiguration asks: POST /validate.

    A policy is refused with the line and column of its first error, or of the expectation that failed in its tests.
    """
    host, port = host_and_port("--listen", listen, example=8443)
    from policyengine.server.listening import CertificateUnusable, server_context

    try:
        tls = server_context(tls_cert_file, tls_private_key_file)
    except CertificateUnusable as error:
        raise UnusableInput(f"{error}; `deploy/overlays/webhook` has one made") from None
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.config import process

    process.start_logging()
    registry = installed_registry()

    async def run() -> None:
        from policyengine.commands.cluster_client import stop_on_signals
        from policyengine.server.webhook import serve

        await serve(registry, host, port, tls, stop_on_signals())

    process.run(run())
