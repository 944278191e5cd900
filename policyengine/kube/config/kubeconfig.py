"""How to reach an API server and be known there: by kubeconfig files, or by the service account of a pod.

Of kubeconfig files laid over each other the first to name a cluster, a user, a context or the current context has the
last word (https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/). What is simply
written down is read here. What has to be worked out (exec plugins, identity providers) is left to the `kubernetes`
package, which is imported only then: it costs a fifth of a second and 34 MB.
"""

from __future__ import annotations

import logging
import os
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from policyengine import regular_file

_LARGEST = 16 << 20
"""Bytes of a kubeconfig: thousands of clusters."""


class ConfigError(Exception):
    """A kubeconfig or certificate cannot be used; one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Section:
    """A cluster, a user or a context, as one of the files describes it."""

    fields: Mapping[str, Any]
    folder: Path
    """What its relative paths start from: the folder of its file."""

    def path(self, field: str) -> str:
        """The file that a field names."""
        return str(self.folder / str(self.fields[field]))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A context and what it names; a user without fields where it names none."""

    where: str
    """The files, for messages."""
    context: str
    cluster: Section
    user: Section
    namespace: str = ""
    """The context's, "" where it names none."""


def choose(paths: Sequence[str], context: str | None = None) -> Chosen:
    """The context of that name, or the current one, of files laid over each other. Raises `ConfigError`."""
    where = f"kubeconfig `{':'.join(paths)}`"
    current, sections = _merged(paths, where)
    contexts, clusters, users = sections["context"], sections["cluster"], sections["user"]
    name = context or current
    if not name:
        names = ", ".join(contexts)
        hint = f"choose one with `kubectl config use-context`: {names}" if names else "it defines no context"
        raise ConfigError(f"{where} has no current context; {hint}")
    if name not in contexts:
        raise ConfigError(f"{where} has no context `{name}`; it has {', '.join(contexts) or 'none'}")
    named = contexts[name]
    cluster, user = str(named.fields.get("cluster")), named.fields.get("user")
    if cluster not in clusters:
        raise ConfigError(f"{where}: context `{name}` names cluster `{cluster}`, which it does not describe")
    if not clusters[cluster].fields.get("server"):
        raise ConfigError(f"{where}: cluster `{cluster}` has no `server`")
    if user and str(user) not in users:
        raise ConfigError(f"{where}: context `{name}` names user `{user}`, which it does not describe")
    nobody = Section({}, named.folder)
    namespace = str(named.fields.get("namespace") or "")
    return Chosen(where, name, clusters[cluster], users[str(user)] if user else nobody, namespace)


def _merged(paths: Sequence[str], where: str) -> tuple[str, dict[str, dict[str, Section]]]:
    """The current context's name, and sections by name for each of `cluster`, `user`, `context`."""
    current = ""
    found: dict[str, dict[str, Section]] = {"cluster": {}, "user": {}, "context": {}}
    for path in paths:
        content = _content(Path(path).expanduser(), where)
        current = current or str(content.get("current-context") or "")
        folder = Path(path).expanduser().absolute().parent
        for kind, sections in found.items():
            for name, fields in _named(content.get(f"{kind}s") or (), kind, where).items():
                sections.setdefault(name, Section(fields, folder))
    return current, found


def _content(path: Path, where: str) -> Mapping[str, Any]:
    from policyengine import plain_yaml

    try:
        content = plain_yaml.load(regular_file.read(path, _LARGEST).decode())
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not a kubeconfig: it is not UTF-8") from None
    except plain_yaml.PlainYamlError as error:
        raise ConfigError(f"{where} is not a kubeconfig: it {error}") from None
    except FileNotFoundError:
        raise ConfigError(f"{where} does not exist") from None
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {regular_file.reason(error)}") from None
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError(f"{where} is not a kubeconfig")
    return content or {}


def _named(entries: Any, kind: str, where: str) -> dict[str, Mapping[str, Any]]:
    """`[{name, KIND: {…}}]` as a mapping; of two entries of a name the first."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigError(f"{where} is not a kubeconfig: its `{kind}s` are no list")
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        fields = entry.get(kind) or {} if isinstance(entry, Mapping) and "name" in entry else None
        if not isinstance(fields, Mapping):
            raise ConfigError(f"{where} is not a kubeconfig: an entry of its `{kind}s` has no `name`, or no `{kind}`")
        found.setdefault(str(entry["name"]), fields)
    return found


def first_line(error: BaseException) -> str:
    """An error of somebody else's in one line."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


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
    """One that the kubeconfig names; else that of the environment counts."""
    namespace: str = ""
    """Of names without one; "" where nothing says."""


def kubeconfig_settings(paths: Sequence[str], context: str | None) -> Settings:
    """The settings of a context, or of the current one. Raises `ConfigError`."""
    chosen = choose(paths, context)
    found = written(chosen) if is_written_down(chosen) else by_package(paths, chosen)
    return replace(found, namespace=chosen.namespace)


def is_written_down(chosen: Chosen) -> bool:
    """Whether `written` is all there is to a context."""
    return _WORKED_OUT.isdisjoint(chosen.user.fields)


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
        verify=not _is_set(cluster, "insecure-skip-tls-verify", chosen.where),
        server_hostname=str(hostname) if hostname else None,
        proxy=str(proxy) if proxy else None,
    )


def _is_set(section: Section, field: str, where: str) -> bool:
    given = section.fields.get(field) or False
    if not isinstance(given, bool):
        raise ConfigError(f"{where}: `{field}` is `{given}`; write true or false")
    return given


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
        token = regular_file.read(path, _LARGEST).decode().strip()
    except OSError as error:
        raise ConfigError(f"the token file `{path}` cannot be read: {regular_file.reason(error)}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the token file `{path}` cannot be read: it is not UTF-8") from None
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
    if not regular_file.is_file(Path(path)):
        raise ConfigError(f"{where}: `{field}` is `{path}`, which does not exist")
    return Pem(path)


def by_package(paths: Sequence[str], chosen: Chosen) -> Settings:
    """The settings of a context that was found in the files. Raises `ConfigError`."""
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

    configuration = Configuration()
    complaints = _Complaints()
    try:
        merged = KubeConfigMerger(os.pathsep.join(paths)).config
        loader = KubeConfigLoader(merged, active_context=chosen.context, config_base_path=None)
        with complaints:
            loader.load_and_set(configuration)
    except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{chosen.where}: {first_line(error)}") from None
    if complaints.messages and not configuration.api_key and not configuration.cert_file:
        raise ConfigError(f"{chosen.where}: no credentials: {complaints.messages[0]}")

    def authorization() -> str:
        token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return token.strip() if token else ""

    def pem(path: str | None) -> Pem | None:
        return Pem(path) if path else None

    return Settings(
        url=configuration.host,
        authorization=authorization,
        authority=pem(configuration.ssl_ca_cert),
        certificate=pem(configuration.cert_file),
        key=pem(configuration.key_file),
        verify=configuration.verify_ssl,
        server_hostname=configuration.tls_server_name,
        proxy=configuration.proxy,
    )


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
