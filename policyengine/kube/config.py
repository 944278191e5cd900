"""Which API server, and as whom: kubeconfig or in-cluster, resolved by the `kubernetes` package.

The package is imported only here and only when a server is asked for: it costs a third of a second and 34 MB.
Its own complaints name its internals, so what an operator gets wrong most is looked for first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyengine.kube.http_transport import HttpTransport
from policyengine.kube.transport import Transport

if TYPE_CHECKING:
    from kubernetes.client import Configuration

DEFAULT_KUBECONFIG = "~/.kube/config"


class ConfigError(Exception):
    """A kubeconfig or certificate cannot be used; one sentence that says what to do."""


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

    def connect(self, connections: int = 128) -> Transport:
        """A transport to it; call inside a running event loop."""
        how: dict[str, Any] = {
            "ssl_context": self.ssl_context,
            "server_hostname": self.server_hostname,
            "authorize": self.authorize,
            "connections": connections,
        }
        if self.proxy is None:
            return HttpTransport(self.url, **how)
        from policyengine.kube.aiohttp_transport import AiohttpTransport

        return AiohttpTransport(self.url, proxy=self.proxy, **how)


class Credentials:
    """The Authorization header; the package's hook renews tokens from their file or plugin.

    The hook may read a file or run a program, so it runs in a thread and at most every `every` seconds. After a
    401 everything is loaded again, which finds a token file that was replaced.
    """

    def __init__(self, load: Callable[[], Configuration], configuration: Configuration, every: float = 30.0) -> None:
        self._load = load
        self._configuration = configuration
        self._every = every
        self._headers = _authorization(configuration)
        self._read_at: float | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, fresh: bool) -> Mapping[str, str]:
        """The headers to send; `fresh` after the server refused the last ones."""
        now = asyncio.get_running_loop().time()
        if self._read_at is None:
            self._read_at = now
        if fresh or now - self._read_at > self._every:
            async with self._lock:
                await self._renew(fresh, now)
        return self._headers

    async def _renew(self, fresh: bool, now: float) -> None:
        if self._read_at is not None and self._read_at > now:
            return
        self._read_at = asyncio.get_running_loop().time()
        try:
            if fresh:
                self._configuration = await asyncio.to_thread(self._load)
            self._headers = await asyncio.to_thread(_authorization, self._configuration)
        except (ConfigError, OSError) as error:
            logging.getLogger(__name__).warning("credentials cannot be renewed, the old ones stay: %s", error)


def load(kubeconfig: Path | None = None, context: str | None = None) -> Server:
    """The server of a kubeconfig, of `$KUBECONFIG`, of `~/.kube/config`, or of the pod this runs in, in that order.

    Raises `ConfigError`.
    """
    paths = _kubeconfig_paths(kubeconfig)
    if paths:
        read, source = _kubeconfig(paths, context), ":".join(paths)
    elif "KUBERNETES_SERVICE_HOST" in os.environ:
        read, source = _in_cluster, "the cluster this runs in"
    else:
        raise ConfigError(f"no kubeconfig: `{DEFAULT_KUBECONFIG}` does not exist; pass --kubeconfig or set $KUBECONFIG")
    configuration = read()
    return Server(
        url=configuration.host,
        source=source,
        ssl_context=_ssl_context(configuration),
        server_hostname=configuration.tls_server_name,
        proxy=configuration.proxy,
        authorize=Credentials(read, configuration),
    )


def _kubeconfig_paths(kubeconfig: Path | None) -> list[str]:
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ConfigError(f"kubeconfig `{kubeconfig}` does not exist")
        return [str(kubeconfig)]
    named = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    found = [part for part in named if Path(part).expanduser().is_file()]
    if named and not found:
        raise ConfigError(f"kubeconfig `{named[0]}` does not exist; it is named by $KUBECONFIG")
    default = Path(DEFAULT_KUBECONFIG).expanduser()
    return found or ([str(default)] if default.is_file() else [])


def _kubeconfig(paths: list[str], context: str | None) -> Callable[[], Configuration]:
    """A function that reads the files (again), with complaints that name them."""

    def read() -> Configuration:
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException
        from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
        from yaml import YAMLError

        where = f"kubeconfig `{':'.join(paths)}`"
        try:
            merged = KubeConfigMerger(os.pathsep.join(paths)).config
        except (YAMLError, UnicodeDecodeError, TypeError, AttributeError, KeyError) as error:
            raise ConfigError(f"{where} is not a kubeconfig: {_first_line(error)}") from None
        except (ConfigException, OSError) as error:
            raise ConfigError(f"{where} cannot be read: {_first_line(error)}") from None
        _check(merged, context, where)
        configuration = Configuration()
        complaints = _Complaints()
        try:
            with complaints:
                KubeConfigLoader(merged, active_context=context, config_base_path=None).load_and_set(configuration)
        except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{where}: {_first_line(error)}") from None
        if complaints.messages and not configuration.api_key and not configuration.cert_file:
            raise ConfigError(f"{where}: no credentials: {complaints.messages[0]}")
        return configuration

    return read


def _in_cluster() -> Configuration:
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config

    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise ConfigError(f"the service account of this pod cannot be used: {_first_line(error)}") from None
    return configuration


def _check(merged: Any, context: str | None, where: str) -> None:
    """The mistakes the package passes over, or words in its own terms."""
    value = merged.value if merged is not None else None
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is not a kubeconfig")
    contexts = _named(value.get("contexts"), "context")
    name = context or value.get("current-context")
    if not name:
        hint = (
            f"choose one with `kubectl config use-context`: {', '.join(contexts)}"
            if contexts
            else "it defines no context"
        )
        raise ConfigError(f"{where} has no current context; {hint}")
    if name not in contexts:
        raise ConfigError(f"{where} has no context `{name}`; it has {', '.join(contexts) or 'none'}")
    cluster, user = contexts[name].get("cluster"), contexts[name].get("user")
    clusters = _named(value.get("clusters"), "cluster")
    if cluster not in clusters:
        raise ConfigError(f"{where}: context `{name}` names cluster `{cluster}`, which it does not describe")
    if not clusters[cluster].get("server"):
        raise ConfigError(f"{where}: cluster `{cluster}` has no `server`")
    if user and user not in _named(value.get("users"), "user"):
        raise ConfigError(f"{where}: context `{name}` names user `{user}`, which it does not describe")


def _named(entries: Any, field: str) -> dict[str, Mapping[str, Any]]:
    """`[{name, FIELD: {…}}]` as a mapping; what has another form is left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries or ():
        plain = getattr(entry, "value", entry)
        if isinstance(plain, Mapping) and "name" in plain:
            found[str(plain["name"])] = plain.get(field) or {}
    return found


def _ssl_context(configuration: Configuration) -> ssl.SSLContext | None:
    """None for plain HTTP."""
    if not configuration.host.startswith("https://"):
        return None
    ca = configuration.ssl_ca_cert
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificate authority `{ca}` cannot be used: {_first_line(error)}") from None
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        try:
            context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"client certificate `{configuration.cert_file}`: {_first_line(error)}") from None
    return context


def _authorization(configuration: Configuration) -> dict[str, str]:
    token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    return {"Authorization": token.strip()} if token else {}


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


class _Complaints(logging.Handler):
    """Collects what the package logs instead of raising, while it loads."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first line."""
        self.messages.append((record.getMessage().splitlines() or [""])[0])

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)
