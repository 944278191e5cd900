"""Where what was learnt outlives the process: a SQLite file, or a ConfigMap where several replicas share it."""

from __future__ import annotations

import sqlite3
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed


class StoreError(Exception):
    """The state cannot be read or written; one sentence."""


class Store(Protocol):
    """Keeps one text."""

    async def load(self) -> str | None:
        """What was saved last; None where nothing was. Raises `StoreError`."""

    async def save(self, text: str) -> None:
        """Keep this instead, whole or not at all. Raises `StoreError`."""

    def close(self) -> None:
        """Let go of files."""


class SqliteStore:
    """A file of one table with one row."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreError`."""
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 0), text TEXT NOT NULL)"
            )
        except sqlite3.Error as error:
            raise StoreError(f"`{path}` cannot hold what is learnt: {error}") from error

    async def load(self) -> str | None:
        """See `Store`."""
        try:
            row = self._connection.execute("SELECT text FROM state").fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"`{self._path}` cannot be read: {error}") from error
        return None if row is None else str(row[0])

    async def save(self, text: str) -> None:
        """See `Store`."""
        try:
            self._connection.execute("INSERT OR REPLACE INTO state VALUES (0, ?)", (text,))
        except sqlite3.Error as error:
            raise StoreError(f"`{self._path}` cannot be written: {error}") from error

    def close(self) -> None:
        """See `Store`."""
        self._connection.close()


class ConfigMapStore:
    """A key of a ConfigMap. It must exist: who may write one by name need not be allowed to create any.

    Replicas see the same pods and learn the same; the next one starts with what the last of them wrote.
    """

    def __init__(self, client: Client, namespace: str, name: str, key: str) -> None:
        self._client = client
        self._key = key
        self._namespace = namespace
        self._name = name
        self._path = CONFIG_MAPS.path(namespace, name)

    async def load(self) -> str | None:
        """See `Store`."""
        try:
            found = decode(ConfigMap, await self._client.call("GET", self._path))
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise self._error(error) from error
            raise StoreError(
                f"ConfigMap `{self._namespace}/{self._name}` does not exist; create it: "
                f"kubectl -n {self._namespace} create configmap {self._name}"
            ) from error
        except ConnectionFailed as error:
            raise self._error(error) from error
        return found.data.get(self._key)

    async def save(self, text: str) -> None:
        """See `Store`."""
        try:
            await self._client.call("PATCH", self._path, {"data": {self._key: text}})
        except (ApiError, ConnectionFailed) as error:
            raise self._error(error) from error

    def close(self) -> None:
        """Nothing to let go of."""

    def _error(self, error: Exception) -> StoreError:
        return StoreError(f"ConfigMap `{self._namespace}/{self._name}` cannot be used: {error}")
