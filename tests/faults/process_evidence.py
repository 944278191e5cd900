"""What an API server showed to a bystander, made into a tape for the auditor.

The bystander watches pods, nodes and leases with a client of its own. Everything it saw is put in the order of
resourceVersions, which the server counts over all kinds; who bound a pod the server's own record says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Transport
from policyengine.kube.leader import LeaseSettings
from policyengine.simulator.controllers.controller_client import Caller
from tests.faults.auditor import Auditor
from tests.faults.knowledge import Call, Policy

Json = dict[str, Any]
PATHS = {
    "Pod": "/api/v1/namespaces/default/pods",
    "Node": "/api/v1/nodes",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
}

LEASE = LeaseSettings().name
"""A real API server has one of its own beside it."""
SLEW = 500e-6
"""renewTime is wall-clock time, leases are counted by the monotonic clock; Linux slews the one against the other by at
most 500 parts in a million (adjtimex(2))."""


@dataclass(frozen=True)
class Write:
    """One version of an object, as the auditor reads writes; `after` None where it went."""

    kind: str
    name: str
    namespace: str
    version: int
    at: float
    """When it was seen, in seconds since the epoch; of a lease, when it was renewed."""
    before: Json | None
    after: Json | None
    subresource: str = ""
    user_agent: str = ""

    @property
    def binds(self) -> bool:
        return self.kind == "Pod" and self.after is not None and not _node(self.before) and bool(_node(self.after))


@dataclass
class Age:
    """What a server showed until it went back to an older copy. Versions are in order within one."""

    copy: dict[tuple[str, str], Json] = field(default_factory=dict)
    """(kind, name) -> object, as the copy had it; nothing in the first age."""
    writes: list[Write] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)
    """Kinds of which the first list of the copy is in."""

    def in_order(self) -> list[Write]:
        return sorted(self.writes, key=lambda write: write.version)

    def of_copy(self, kind: str, key: str) -> dict[str, Json]:
        return {item["metadata"][key]: item for (what, _), item in self.copy.items() if what == kind}


class Bystander:
    """Watches from `watch` on; `ages` is what it saw."""

    def __init__(self, transport: Transport) -> None:
        self.ages = [Age(listed=set(PATHS))]
        self.pods: dict[str, Json] = {}
        """By name."""
        self.lease: Json = {}
        self._caller = Caller(transport, SystemClock(), "bystander")
        self._last: dict[tuple[str, str], Json] = {}
        self._changed = asyncio.Event()

    async def watch(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for kind, path in PATHS.items():
                group.create_task(self._follow(kind, path))

    def restored(self) -> None:
        """The server is away, and comes back as an older copy."""
        self.ages.append(Age())
        self._last.clear()
        self.pods.clear()

    async def _follow(self, kind: str, path: str) -> None:
        async for what, item in self._caller.follow(path):
            if what == "LISTED":
                self.ages[-1].listed.add(kind)
            if item and (kind != "Lease" or item["metadata"]["name"] == LEASE):
                self._see(kind, what, item)

    def _see(self, kind: str, what: str, item: Json) -> None:
        key = kind, item["metadata"]["name"]
        before, version = self._last.get(key), int(item["metadata"]["resourceVersion"])
        if before is not None and int(before["metadata"]["resourceVersion"]) >= version:
            return  # a list, after a watch broke
        after = None if what == "DELETED" else item
        at = _renewed(item) if kind == "Lease" else time.time()
        age = self.ages[-1]
        if kind in age.listed:
            age.writes.append(Write(kind, key[1], item["metadata"].get("namespace", ""), version, at, before, after))
        else:
            age.copy[key] = item
        self._last[key] = item
        if kind == "Pod":
            self.pods[key[1]] = item
        elif kind == "Lease":
            self.lease = item["spec"]
        self._changed.set()

    async def until(self, holds: Callable[[], bool], seconds: float, what: str) -> float:
        """Wait until something it saw makes it hold; how long that took. Fails in these words."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{what}: not within {seconds:g} s; {self.account()}") from None
        return time.monotonic() - began

    @property
    def bound(self) -> dict[str, str]:
        """Pod -> node."""
        return {name: node for name, pod in self.pods.items() if (node := _node(pod))}

    def told(self, name: str) -> bool:
        """Whether a pod that waits says why."""
        conditions = self.pods[name].get("status", {}).get("conditions", [])
        return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)

    def account(self) -> str:
        """In one line, how things stand."""
        return f"{len(self.bound)} of {len(self.pods)} pods are bound, the lease: {self.lease or 'none'}"

    def bindings(self) -> list[Write]:
        """The writes that bound a pod, in order."""
        return [write for age in self.ages for write in age.in_order() if write.binds]

    # ---- the tape

    def objections(self, binders: Mapping[str, str], identities: Mapping[str, str], scheduler: str) -> list[str]:
        """What the auditor says. `binders`: pod -> the replica that bound it; `identities`: how a replica calls itself
        on the lease -> the replica."""
        auditor = Auditor(slew=SLEW)
        tape = self._tape(binders, identities)
        auditor.read(tape)
        auditor.finish(tape[-1][0], None, {scheduler: Policy(scheduler)})
        return auditor.objections

    def _tape(self, binders: Mapping[str, str], identities: Mapping[str, str]) -> list[tuple[float, str, Any]]:
        tape: list[tuple[float, str, Any]] = []
        began, names = self.ages[0].in_order()[0].at, set(identities.values())
        for age in self.ages:
            if age.copy:
                lease = age.copy.get(("Lease", LEASE), {})
                tape.append((tape[-1][0], "restored", (age.of_copy("Pod", "uid"), age.of_copy("Node", "name"), lease)))
            tape += self._tape_of(age, began, binders, identities, names)
        return tape

    def _tape_of(
        self, age: Age, began: float, binders: Mapping[str, str], identities: Mapping[str, str], names: set[str]
    ) -> list[tuple[float, str, Any]]:
        tape: list[tuple[float, str, Any]] = []
        for write in age.in_order():
            at = write.at - began
            if write.kind == "Lease":
                tape += _of_lease(at, write, identities)
                continue
            who = binders[write.name] if write.binds else ""
            if who:
                tape.append((at, "sent", _binding_of(who, write)))
            tape.append((at, "write", Write(**vars(write) | _by(who))))
            item = write.after or write.before
            tape += [
                (at, "shown", (name, f"{write.kind.lower()}s", "MODIFIED" if write.after else "DELETED", item))
                for name in names
            ]
        return tape


def _by(who: str) -> Json:
    return {"subresource": "binding", "user_agent": who} if who else {}


def _binding_of(who: str, write: Write) -> Call:
    assert write.after is not None
    body = {"metadata": {"uid": write.after["metadata"]["uid"]}, "target": {"name": _node(write.after)}}
    return Call(who, "POST", f"{PATHS['Pod']}/{write.name}/binding", body, 201)


def _of_lease(at: float, write: Write, identities: Mapping[str, str]) -> list[tuple[float, str, Any]]:
    """The renewal and what it wrote; the holder by the name the bindings go by."""
    assert write.after is not None
    holder = identities.get(write.after["spec"].get("holderIdentity", ""), "")
    named = {**write.after, "spec": {**write.after["spec"], "holderIdentity": holder}}
    call = Call(holder, "PUT", f"{PATHS['Lease']}/{write.name}", {}, 200)
    written = (at, "write", Write(**vars(write) | {"after": named}))
    return [(at, "sent", call), (at, "answered", call), written] if holder else [written]


def _renewed(lease: Json) -> float:
    return datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()


def _node(pod: Json | None) -> str:
    return "" if pod is None else str(pod["spec"].get("nodeName") or "")
