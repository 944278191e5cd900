"""An API server's address, certificates and credentials, where they are simply written down: in a kubeconfig, or in the
files of a pod's service account (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/).

What has to be worked out (plugins, identity providers, proxies of the environment) is left to `package_settings`.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from policyengine.kube.config.kubeconfig import Chosen, ConfigError, Section, first_line

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_WORKED_OUT = frozenset({"exec", "auth-provider", "username"})
"""Fields of a user that say how credentials are come by, not what they are."""


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or key in PEM: the path of a file, or what it holds."""

    path: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is needed to reach an API server and be known there."""

    url: str
    authorization: Callable[[], str]
    """The Authorization header as it is now, "" for none. May read a file or run a program; raises `ConfigError`,
    `OSError`."""
    authority: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    verify: bool = True
    server_hostname: str | None = None
    proxy: str | None = None


def has_environment_proxy() -> bool:
    """Whether `https_proxy` or its like is set."""
    return any(name.lower().endswith("_proxy") and value for name, value in os.environ.items())


def is_written_down(chosen: Chosen) -> bool:
    """Whether `written` is all there is to a context."""
    return _WORKED_OUT.isdisjoint(chosen.user.fields) and not has_environment_proxy()


def written(chosen: Chosen) -> Settings:
    """The settings of a context. Raises `ConfigError`."""
    cluster, user = chosen.cluster, chosen.user
    hostname, proxy = cluster.fields.get("tls-server-name"), cluster.fields.get("proxy-url")
    url = str(cluster.fields["server"]).rstrip("/")

    def pem(section: Section, field: str) -> Pem | None:
        return _pem(section, field, chosen.where) if url.startswith("https://") else None

    return Settings(
        url=url,
        authorization=_authorization(user),
        authority=pem(cluster, "certificate-authority"),
        certificate=pem(user, "client-certificate"),
        key=pem(user, "client-key"),
        verify=not cluster.fields.get("insecure-skip-tls-verify"),
        server_hostname=str(hostname) if hostname else None,
        proxy=str(proxy) if proxy else None,
    )


def of_service_account(folder: Path = SERVICE_ACCOUNT) -> Settings:
    """The settings of a pod. Raises `ConfigError`."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    where = "the service account of this pod cannot be used"
    if not host or not port:
        raise ConfigError(f"{where}: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
    authority = folder / "ca.crt"
    if not authority.is_file():
        raise ConfigError(f"{where}: `{authority}` does not exist")
    return Settings(
        url=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorization=lambda: _bearer_of_file(str(folder / "token")),
        authority=Pem(str(authority)),
    )


def _authorization(user: Section) -> Callable[[], str]:
    """A file, which is read anew each time, goes before a token that stands in the section itself
    (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/#AuthInfo)."""
    if user.fields.get("tokenFile"):
        return lambda: _bearer_of_file(user.path("tokenFile"))
    token = str(user.fields.get("token") or "").strip()
    return lambda: f"Bearer {token}" if token else ""


def _bearer_of_file(path: str) -> str:
    try:
        token = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token cannot be read: {first_line(error)}") from None
    if not token:
        raise ConfigError(f"the token file `{path}` is empty")
    return f"Bearer {token}"


def _pem(section: Section, field: str, where: str) -> Pem | None:
    """What FIELD-data holds, in base64, else the file that FIELD names."""
    data = section.fields.get(f"{field}-data")
    if data:
        try:
            return Pem(content=b64decode(str(data)))
        except ValueError as error:
            raise ConfigError(f"{where}: `{field}-data` is not base64: {first_line(error)}") from None
    if not section.fields.get(field):
        return None
    path = section.path(field)
    if not Path(path).is_file():
        raise ConfigError(f"{where}: `{field}` is `{path}`, which does not exist")
    return Pem(path)
