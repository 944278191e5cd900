"""`policyengine webhook`: refuses a broken policy at `kubectl apply`."""

from __future__ import annotations

import logging
from pathlib import Path

import click

LOOPBACK = "127.0.0.1"


@click.command()
@click.option("--listen", default=":8443", show_default=True, metavar="[HOST]:PORT", help="On loopback without a host.")
@click.option(
    "--tls-cert-file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Its certificate; the API server asks over HTTPS only.",
)
@click.option("--tls-private-key-file", type=click.Path(path_type=Path), metavar="FILE", help="Its key.")
def webhook(listen: str, tls_cert_file: Path, tls_private_key_file: Path | None) -> None:
    """Review ConfigMaps that carry policies, as a ValidatingWebhookConfiguration asks: POST /validate.

    A policy is refused with the line and column of its first error, or of the expectation that failed in its tests.
    """
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--listen is `{listen}`, which names no port; write 0.0.0.0:8443 or :8443")
    from policyengine.server.tls import CertificateUnusable, server_context

    try:
        tls = server_context(tls_cert_file, tls_private_key_file)
    except CertificateUnusable as error:
        raise click.UsageError(f"{error}; `deploy/overlays/webhook` has one made") from None
    from policyengine.commands.installed_plugins import installed_catalogue
    from policyengine.kube import event_loop

    logging.basicConfig(format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING)
    logging.getLogger("policyengine").setLevel(logging.INFO)
    catalogue = installed_catalogue()

    async def run() -> None:
        from policyengine.commands.run import stop_on_signals
        from policyengine.server.webhook import serve

        await serve(catalogue, host.strip("[]") or LOOPBACK, int(port), tls, stop_on_signals())

    event_loop.run(run())
