"""Inverted indices over rows: who has an image, who uses a host port. Asked by value, kept up to date by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import Rows
from policyengine.cluster.node_objects import ContainerImage
from policyengine.cluster.pod_shape import ANY_IP, HostPort

_NOBODY: Mapping[int, int] = MappingProxyType({})


class ImageIndex:
    """Image name -> row -> size in bytes. Of several sizes under one name on one node the first counts."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}
        self._pool: dict[ContainerImage, ContainerImage] = {}

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Enter a row's images."""
        for image in images:
            for name in image.names:
                self._sizes.setdefault(name, {}).setdefault(row, image.size_bytes)

    def remove(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Take a row's images out."""
        for image in images:
            for name in image.names:
                holders = self._sizes.get(name)
                if holders is not None:
                    holders.pop(row, None)
                    if not holders:
                        del self._sizes[name]

    def shared(self, images: tuple[ContainerImage, ...]) -> tuple[ContainerImage, ...]:
        """The same images as objects shared by all nodes that have them."""
        if len(self._pool) > 1 << 15:
            self._pool.clear()
        return tuple(self._pool.setdefault(image, image) for image in images)

    def sizes(self, name: str, rows: int) -> NDArray[np.int64]:
        """The image's size on each node, 0 where it is not: `int64[rows]`."""
        column = np.zeros(rows, dtype=np.int64)
        holders = self._sizes.get(name)
        if holders:
            where = np.fromiter(holders.keys(), dtype=np.int64, count=len(holders))
            column[where] = np.fromiter(holders.values(), dtype=np.int64, count=len(holders))
        return column

    def holders(self, name: str) -> Mapping[int, int]:
        """Row -> size, for the nodes that have the image."""
        return self._sizes.get(name, _NOBODY)

    def dump(self) -> dict[str, dict[int, int]]:
        """Name -> row -> size, as plain data."""
        return {name: dict(holders) for name, holders in self._sizes.items()}


class PortIndex:
    """(protocol, port) -> host IP -> row -> number of pods."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Count the ports of a pod that came to the row."""
        for ip, protocol, port in ports:
            rows = self._users.setdefault((protocol, port), {}).setdefault(ip, {})
            rows[row] = rows.get(row, 0) + 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Count the ports of a pod that left the row."""
        for ip, protocol, port in ports:
            by_ip = self._users[(protocol, port)]
            rows = by_ip[ip]
            rows[row] -= 1
            if rows[row] == 0:
                del rows[row]
            if not rows:
                del by_ip[ip]
            if not by_ip:
                del self._users[(protocol, port)]

    def users(self, ip: str, protocol: str, port: int) -> Mapping[int, int]:
        """Row -> number of pods with exactly this IP, protocol and port."""
        return self._users.get((protocol, port), {}).get(ip, _NOBODY)

    def conflicts(self, ip: str, protocol: str, port: int) -> Rows:
        """The rows where the port cannot be had: `0.0.0.0` collides with every IP, and every IP with it."""
        by_ip = self._users.get((protocol, port))
        if not by_ip:
            return np.empty(0, dtype=np.int64)
        tried = by_ip if ip == ANY_IP else (ANY_IP, ip)
        rows = {row for one in tried for row in by_ip.get(one, _NOBODY)}
        return np.array(sorted(rows), dtype=np.int64)

    def count(self) -> int:
        """How many ports are taken in all, each pod's counted."""
        return sum(sum(rows.values()) for by_ip in self._users.values() for rows in by_ip.values())
