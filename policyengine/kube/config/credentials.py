"""Which API server, and as whom: by a kubeconfig, or by the pod this runs in."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from policyengine import regular_file
from policyengine.kube.config.kubeconfig import (
    ConfigError,
    Pem,
    Settings,
    first_line,
    kubeconfig_settings,
    of_service_account,
)
from policyengine.kube.http.client import Transport

DEFAULT_KUBECONFIG = "~/.kube/config"
RENEWED_EVERY = 30.0
LARGEST_PEM = 4 << 20
"""Bytes of a certificate, key or authority."""


@dataclass(frozen=True)
class Server:
    """Everything needed to reach an API server."""

    url: str
    source: str
    """Where this was read: a path and its context, or `the cluster this runs in`."""
    ssl_context: ssl.SSLContext | None
    server_hostname: str | None
    proxy: str | None
    authorize: Credentials
    namespace: str = ""
    """The context's, "" where it names none."""

    def connect(self, connections: int | None = None) -> Transport:
        """A transport to it; call inside a running event loop."""
        from policyengine.kube.http.aiohttp_transport import CONNECTIONS, AiohttpTransport  # a seventh of a second

        return AiohttpTransport(
            self.url,
            ssl_context=self.ssl_context,
            server_hostname=self.server_hostname,
            proxy=self.proxy,
            authorize=self.authorize,
            connections=connections or CONNECTIONS,
        )


class Credentials:
    """The Authorization header, renewed from a token's file or plugin.

    That may read a file or run a program, so it is done in a thread and at most every `RENEWED_EVERY` seconds. After a
    401 everything is loaded again.
    """

    def __init__(self, load: Callable[[], Settings], settings: Settings) -> None:
        self._load = load
        self._settings = settings
        self._headers = _headers(settings)
        self._read_at: float | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, fresh: bool) -> Mapping[str, str]:
        """The headers to send; `fresh` after the server refused the last ones."""
        now = asyncio.get_running_loop().time()
        if self._read_at is None:
            self._read_at = now
        if fresh or now - self._read_at > RENEWED_EVERY:
            async with self._lock:
                await self._renew(fresh, now)
        return self._headers

    async def _renew(self, fresh: bool, now: float) -> None:
        if self._read_at is not None and self._read_at > now:
            return
        self._read_at = asyncio.get_running_loop().time()
        try:
            if fresh:
                self._settings = await asyncio.to_thread(self._load)
            self._headers = await asyncio.to_thread(_headers, self._settings)
        except (ConfigError, OSError) as error:
            logging.getLogger(__name__).warning("credentials cannot be renewed, the old ones stay: %s", error)


def load(kubeconfig: Path | None = None, context: str | None = None) -> Server:
    """The server of a kubeconfig, of `$KUBECONFIG`, of `~/.kube/config`, or of the pod this runs in, in that order.

    Raises `ConfigError`.
    """
    paths = _kubeconfig_paths(kubeconfig)
    read: Callable[[], Settings]
    if paths:
        read, source = partial(kubeconfig_settings, paths, context), ":".join(paths)
    elif "KUBERNETES_SERVICE_HOST" in os.environ:
        read, source = of_service_account, "the cluster this runs in"
    else:
        raise ConfigError(f"no kubeconfig: `{DEFAULT_KUBECONFIG}` does not exist; pass --kubeconfig or set $KUBECONFIG")
    settings = read()
    return Server(
        url=settings.url,
        source=source,
        ssl_context=_ssl_context(settings),
        server_hostname=settings.server_hostname,
        proxy=settings.proxy or _environment_proxy(settings.url),
        authorize=Credentials(read, settings),
        namespace=settings.namespace,
    )


def _environment_proxy(url: str) -> str | None:
    """That of `https_proxy` or its like, unless `no_proxy` names the host."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _kubeconfig_paths(kubeconfig: Path | None) -> list[str]:
    if kubeconfig is not None:
        return [str(kubeconfig)]
    named = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    found = [part for part in named if regular_file.is_file(Path(part).expanduser())]
    if named and not found:
        raise ConfigError(f"kubeconfig `{named[0]}` does not exist; it is named by $KUBECONFIG")
    default = Path(DEFAULT_KUBECONFIG).expanduser()
    return found or ([str(default)] if regular_file.is_file(default) else [])


def _ssl_context(settings: Settings) -> ssl.SSLContext | None:
    """None for plain HTTP."""
    if not settings.url.startswith("https://"):
        return None
    context = _verifying(settings.authority) if settings.verify else trusting()
    if settings.certificate is not None:
        try:
            load_certificate(context, settings.certificate, settings.key)
        except OSError as error:  # also ssl.SSLError
            name = settings.certificate.path or "client-certificate-data"
            raise ConfigError(f"client certificate `{name}`: {first_line(error)}") from None
    return context


def _verifying(authority: Pem | None) -> ssl.SSLContext:
    """Trusts servers with a certificate of the authority; without one, of those that the system trusts."""
    if authority is None:
        return ssl.create_default_context()
    try:
        if authority.path:
            return ssl.create_default_context(cafile=authority.path)
        text = authority.content.decode("ascii", "ignore")
        if not text.strip():  # for which `ssl` would take the system's
            raise ValueError("it holds no certificate in PEM")
        return ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:  # also ssl.SSLError
        name = authority.path or "certificate-authority-data"
        raise ConfigError(f"certificate authority `{name}` cannot be used: {first_line(error)}") from None


def trusting() -> ssl.SSLContext:
    """Takes any server at its word, and no time to read the system's authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def load_certificate(context: ssl.SSLContext, certificate: Pem, key: Pem | None) -> None:
    """Have a connection show a client certificate. Raises `OSError` (`ssl.SSLError` too).

    OpenSSL reads it from files only: what is not in one is written to one for a moment.
    """
    with TemporaryDirectory(prefix="policyengine-") as folder:  # readable by its owner alone

        def path_of(pem: Pem, name: str) -> str:
            if pem.path:
                regular_file.read(pem.path, LARGEST_PEM)
                return pem.path
            path = Path(folder, name)
            path.write_bytes(pem.content)
            return str(path)

        context.load_cert_chain(path_of(certificate, "certificate"), path_of(key, "key") if key is not None else None)


def _headers(settings: Settings) -> dict[str, str]:
    authorization = settings.authorization()
    return {"Authorization": authorization} if authorization else {}
