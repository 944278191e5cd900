"""`--listen [HOST]:PORT` of what serves others."""

from __future__ import annotations

import click

LOOPBACK = "127.0.0.1"


def host_and_port(what: str, text: str, example: int) -> tuple[str, int]:
    """Where the flag or variable `what` says to listen: on loopback without a host.

    Raises:
        click.UsageError: it names no port; the message shows how one is written, with `example`.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"{what} is `{text}`, which names no port; write {LOOPBACK}:{example} or :{example}")
    return host.strip("[]") or LOOPBACK, int(port)
