"""The embedded API server as a process that can be killed: `python -m tests.faults.process_server PORT FILE NAME…`.

Every write goes into the file, a journal, before it is answered, and a successor begins with what stands there: as
kube-apiserver does over etcd, but for the history of watches, which is forgotten (410). Each NAME is an administrator
with the token `NAME-token`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import secrets
import sys
from io import RawIOBase
from pathlib import Path

import msgspec

from policyengine.clock import SystemClock
from policyengine.seldom_collected import collect_seldom
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.api_server.storage import Entry, encode, key_of
from tests.faults.write_log import tell_writes
from tests.faulty_server.server import FaultyServer, Write


def keep(api: FaultyServer, journal: RawIOBase) -> None:
    """Write down every write from now on."""

    def write_down(write: Write) -> None:
        line = {
            "key": next(kind.storage_key for kind in api.kinds if kind.kind == write.kind),
            "object": msgspec.Raw(write.after_raw or write.before_raw or b""),
            "revision": write.resource_version,
            "gone": write.after_raw is None,
            "subresource": write.subresource,
            "user": write.user,
        }
        journal.write(encode(line) + b"\n")

    tell_writes(api, write_down)


def restore(api: FaultyServer, lines: list[str]) -> None:
    """Begin with what a predecessor wrote down. Each line was one write to the file, so none is cut short."""
    for line in lines:
        said = json.loads(line)
        meta = said["object"]["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        raw = json.dumps(said["object"]).encode()
        entry = Entry(namespace, name, meta["uid"], said["revision"], raw)
        collection = api.store.collection((said["key"][0], said["key"][1]))
        if said["gone"]:
            collection.remove(key_of(namespace, name), entry)
        else:
            collection.put(key_of(namespace, name), entry)
        api.store.revision = max(api.store.revision, said["revision"])
    api.store.compact()


async def serve_for_ever(api: FaultyServer, port: int) -> None:
    await serve(api, port=port)
    await asyncio.Event().wait()


def main(port: int, journal: Path, names: list[str]) -> None:
    # The first custom resource loads it, which takes seconds beside `cyclonedx-bom`: longer than leases here last.
    importlib.import_module("jsonschema")
    collect_seldom()  # a pod of 3,000 containers is 50,000 objects, all freed
    # Nothing is called as in the life before: a server that went back makes other objects than it made then.
    tokens = {f"{name}-token": User(name, ADMIN.groups) for name in names}
    api = FaultyServer(SystemClock(), secrets.randbits(64), tokens=tokens)
    if journal.exists():
        restore(api, journal.read_text().splitlines())
    with journal.open("ab", buffering=0) as file:
        keep(api, file)
        asyncio.run(serve_for_ever(api, port))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
