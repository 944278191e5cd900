"""A port of ours: its certificate, a bound on its connections, and why it cannot be had."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

IDLE = 120.0
"""Seconds until an idle connection is closed: more than the 90 of Go's clients, so that they do not meet one that is
being closed."""


class CannotListen(Exception):
    """A server's port, or its certificate, cannot be had; one sentence that says what to do."""


class CertificateUnusable(Exception):
    """A certificate, or its key, that no server can show; one sentence that names the file."""


def server_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """TLS 1.2 or later with this certificate; without `key` the key is in the same file. Raises
    `CertificateUnusable`."""
    _check_readable("certificate", certificate)
    if key is not None:
        _check_readable("key", key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        where = f"key `{key}`" if key is not None else "a key in the same file"
        known = "they do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else "both must be PEM"
        raise CertificateUnusable(f"certificate `{certificate}` cannot be used with {where}: {known}") from None
    return context


def _check_readable(what: str, path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CertificateUnusable(f"{what} `{path}` cannot be used: {reason}") from None


@asynccontextmanager
async def listening(
    application: web.Application, address: str, tls: ssl.SSLContext | None, most: int, shutdown: float
) -> AsyncIterator[int]:
    """The application at `address` (HOST:PORT; without a host on every one), while the block runs; gives the port.

    A connection over `most` is closed as it is made; requests under way are given `shutdown` seconds at the end.
    Raises `CannotListen`.
    """
    host, _, port = address.rpartition(":")
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=shutdown, keepalive_timeout=IDLE)
    await runner.setup()
    assert runner.server is not None
    bounded = _Bounded(runner.server, most)
    try:
        try:
            site = await asyncio.get_running_loop().create_server(
                bounded.connection, host.strip("[]") or None, int(port), ssl=tls, backlog=most
            )
        except OSError as error:
            raise CannotListen(f"cannot listen on `{address}`: {_reason(error)}; choose another --listen") from None
        try:
            yield site.sockets[0].getsockname()[1]
        finally:
            site.close()
    finally:
        await runner.cleanup()


def _reason(error: OSError) -> str:
    """Why a port cannot be had; asyncio tells the address before it, which is said already."""
    return (error.strerror or str(error)).rpartition("): ")[2].lower()


class _Bounded:
    """A server that turns away connections over the limit."""

    def __init__(self, server: web.Server, most: int) -> None:
        self._server = server
        self._most = most

    def connection(self) -> asyncio.BaseProtocol:
        if len(self._server.connections) >= self._most:
            return _Refused()
        return self._server()


class _Refused(asyncio.Protocol):
    """A connection that is closed as it is made."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()
