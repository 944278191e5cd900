"""What a kubeconfig or a pod needs worked out to reach its API server: by the `kubernetes` package.

The package is imported only here and only where it is needed: it costs a fifth of a second and 34 MB.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyengine.kube.config.kubeconfig import Chosen, ConfigError, first_line
from policyengine.kube.config.server_settings import Pem, Settings

if TYPE_CHECKING:
    from kubernetes.client import Configuration


def of_kubeconfig(paths: Sequence[str], chosen: Chosen) -> Settings:
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
    return _settings(configuration)


def of_service_account() -> Settings:
    """The settings of the pod this runs in. Raises `ConfigError`."""
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config

    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise ConfigError(f"the service account of this pod cannot be used: {first_line(error)}") from None
    return _settings(configuration)


def _settings(configuration: Configuration) -> Settings:
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
