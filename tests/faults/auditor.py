"""Reads the tape of a world and objects where an invariant is broken. It imports nothing of the project: it knows the
requests as they went over the wire, the server's writes as JSON, what the watches showed, and counts everything anew.

I1 no pod bound twice · I2 no binding of ours raises a node over its allocatable · I3 no pod lost · I4 no gang in part ·
I5 one leader acts · I6 one policy hash a decision · I7 the cache is what there is · I8 nothing is done in a hot loop ·
I9 every hard rule held when the binding was sent · I10 where bindings are verified, no node stays
overfull by a pod that gives way.

What a replica could not know it is not blamed for, nor for what turned out well: a binding is checked by what both was
true when it was sent, and had been shown to that replica before; and by all that was bound in our name.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from tests.faults.facts import (
    RESOURCES,
    Json,
    allocatable_of,
    asks,
    begun,
    ended,
    gang_of,
    gives_way,
    key_of,
    least_of,
    node_of,
    refusal,
)
from tests.faults.knowledge import LANDS_WITHIN, Call, Knowledge, Policy
from tests.faults.last_look import LastLook

INVARIANTS = {f"I{number}" for number in range(1, 11)}
STRANGER = "outside"
"""The user agent of whoever is no replica."""
RENEW_DEADLINE = 10.0
WINDOW, FAILURES, READS = 60.0, 40, 60
"""In so many seconds so many failed requests, and so many lists, of one client for one path."""
INSTANT = 1e-6
OVERFULL = 2.0
"""Seconds for which a node may be overfull by a pod that gives way."""


class Auditor:
    """`read` takes the tape, `finish` looks at what there is at the end; `objections` is what came of it."""

    def __init__(
        self,
        policies: Mapping[str, Policy] | None = None,
        verifies: bool = False,
        shares: bool = False,
        slew: float = 0.0,
    ) -> None:
        """`policies`: by policy hash. `verifies`: whether bindings are verified. `shares`: whether each replica is an
        installation of its own, and knows of the others' bindings what it was shown. `slew`: by how many seconds in
        one the clock of the times that are read may differ from the clock that leases are counted by."""
        self._slew = slew
        self.objections: list[str] = []
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.lease: Json = {}
        self.now = 0.0
        self._policies = policies or {}
        self._verifies, self._shares = verifies, shares
        self._overfull: dict[str, float] = {}
        """Node -> since when it is overfull by a pod that gives way."""
        self._known: defaultdict[str, Knowledge] = defaultdict(Knowledge)
        self._held: deque[tuple[float, str, Any]] = deque()
        """What was shown at this very moment: nobody has had the time to read it."""
        self._renewed: dict[str, float] = {}
        self._asked: dict[int, float] = {}
        self._leased_at = 0.0
        self._led = ""
        """Who held the lease when the server went back or a stranger wrote it, until a replica does: it may not know
        yet."""
        self._elects = False
        self._bound: dict[str, str] = {}
        """UID -> node of what was bound in our name."""
        self._decided: dict[str, tuple[str, str]] = {}
        self._attempted: dict[str, str] = {}
        self._mates: defaultdict[str, set[str]] = defaultdict(set)
        """Gang -> UIDs of the members that were decided about."""
        self._refused: dict[str, float] = {}
        """UID -> since when its binding has been known to fail, and was not decided again."""
        self._failed: defaultdict[tuple[str, str, str], deque[float]] = defaultdict(deque)
        self._listed: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._not_before: dict[tuple[str, str, str, str], float] = {}

    def object_to(self, invariant: str, what: str) -> None:
        self.objections.append(f"{invariant}: {what} (at {self.now:.3f} s)")

    def read(self, tape: Iterable[tuple[float, str, Any]]) -> None:
        for at, what, details in tape:
            self.now = at
            while self._held and self._held[0][0] < at - INSTANT:
                self._take_in(*self._held.popleft()[1:])
            if what in ("shown", "listed"):
                self._held.append((at, what, details))
                if details[2] == "READ":  # whoever read it asked for it, and acts on it at once
                    self._known[details[0]].settle(details[3])
            else:
                getattr(self, f"_{what}")(details)

    def _take_in(self, what: str, details: Any) -> None:
        who, kind, *rest = details
        if what == "shown":
            self._known[who].show(kind, *rest)
        else:
            self._known[who].listed(kind, *rest)

    # ---- requests

    def _sent(self, call: Call) -> None:
        self._pace(call)
        if call.is_lease:
            self._asked[id(call)] = self.now
            self._elects = True
        elif call.method != "GET":
            self._leads(call)
        if call.is_binding:
            self._judge(call)
            self._known[call.who].on_the_way.add(call.uid)
        elif call.method == "GET":
            self._asked[id(call)] = self.now

    def _answered(self, call: Call) -> None:
        key = (call.who, call.method, call.path)
        is_told_already = call.status == 409 and call.path.endswith(
            "/events"
        )  # by a leader before: asked for once each
        if call.status == 0 or (call.status >= 400 and not is_told_already):
            self._count(self._failed[key], FAILURES, f"{call.who} failed at {call.method} {call.path}")
        if call.retry_after:
            self._not_before[*key, call.uid] = self.now + call.retry_after
        if call.is_lease and call.method != "GET" and call.status in (200, 201):
            self._renewed[call.who] = self._asked[id(call)]
        if call.is_binding:
            self._known[call.who].on_the_way.discard(call.uid)
            self._note_outcome(call)
        elif call.method == "GET" and call.status == 200 and "/pods/" in call.path:
            _, _, place = call.path.partition("/namespaces/")
            namespace, _, name = place.split("/")
            self._known[call.who].reads[namespace, name] = self._asked[id(call)]

    def _note_outcome(self, call: Call) -> None:
        uid, node, known = call.uid, call.body["target"]["name"], self._known[call.who]
        if call.status >= 400 and call.status not in (409, 500, 502, 504):  # 409 may be a conflict with ourselves
            self._refused.setdefault(uid, self.now)
        if call.status in (0, 500, 502, 504):
            known.unknown[uid] = (node, self.now)
        elif call.status >= 400 and uid not in known.unknown:
            known.bound_to.pop(uid, None)
            known.grounds.pop((uid, node), None)
        elif call.status < 400:
            known.unknown.pop(uid, None)

    def _pace(self, call: Call) -> None:
        key = call.who, call.method, call.path, call.uid
        if self.now < self._not_before.pop(key, 0.0) - INSTANT:
            self.object_to("I8", f"{call.who} did not honour Retry-After of {call.method} {call.path}")
        if call.method == "GET" and call.path.count("/") <= 4:
            self._count(self._listed[call.who, call.path], READS, f"{call.who} read {call.path}")

    def _count(self, times: deque[float], most: int, what: str) -> None:
        times.append(self.now)
        while times[0] < self.now - WINDOW:
            times.popleft()
        if len(times) == most + 1:
            self.object_to("I8", f"{what} {most + 1} times in {WINDOW:g} s")

    def _leads(self, call: Call) -> None:
        if not self._elects:
            return
        holder = self._led or self.lease.get("holderIdentity")
        if holder != call.who:
            self.object_to("I5", f"{call.who} sent {call.method} {call.path} while `{holder}` held the lease")
        elif self.now >= self._renewed.get(call.who, -RENEW_DEADLINE) + RENEW_DEADLINE + INSTANT:
            self.object_to("I5", f"{call.who} sent {call.method} {call.path} past its renew deadline")

    # ---- a binding that is sent, by what its sender had been shown

    def _judge(self, call: Call) -> None:
        uid, name, known = call.uid, call.body["target"]["name"], self._known[call.who]
        pod, node = known.pods.get(uid), known.nodes.get(name)
        if pod is not None and pod["spec"].get("nodeName"):
            self.object_to("I1", f"{key_of(pod)} was to be bound though seen on {pod['spec']['nodeName']}")
        other, since = known.unknown.get(uid, (name, 0.0))
        if other != name and self.now < since + LANDS_WITHIN:
            self.object_to("I1", f"{uid} was sent to {name} while its binding to {other} could still land")
        known.bound_to[uid] = name
        pod, node = pod or self.pods.get(uid), node or self.nodes.get(name)  # shown at this moment
        if pod is None:
            return
        if node is None:
            self.object_to("I9", f"{key_of(pod)} was sent to {name}, which is gone")
            return
        versions = node, self.nodes.get(name, node), *self._just_shown(call.who, name)
        if all(refusals := [refusal(pod, one) for one in versions]):
            self.object_to("I9", f"{key_of(pod)} was sent to {name}: {refusals[0]}")
        # Where a request is repeated, the first of them may be the one that lands.
        grounds = versions, known.on(name)
        known.grounds.setdefault((uid, name), grounds)
        self._room(known, *grounds, f"{key_of(pod)} was sent to")
        self._rules_of(uid, pod, name)
        if gang_of(pod):
            self._beside_its_mates(pod)

    def _beside_its_mates(self, pod: Json) -> None:
        """Enough members are bound, or may be: those whose binding failed are not, unless it did so right now."""
        gang, refused = gang_of(pod), {uid for uid, since in self._refused.items() if since < self.now - INSTANT}
        bound = {uid for uid, one in self.pods.items() if gang_of(one) == gang and node_of(one)}
        if self._mates[gang] & refused and len(self._mates[gang] - refused | bound) < least_of(pod):
            self.object_to("I4", f"{key_of(pod)} was sent though bindings of its gang had failed")

    def _just_shown(self, who: str, node: str) -> Iterator[Json]:
        """The versions of a node that were shown at this very moment: who was quick has read them."""
        for _, what, (reader, kind, *rest) in self._held:
            if (what, reader, kind) == ("shown", who, "nodes") and rest[-1]["metadata"]["name"] == node:
                yield rest[-1]

    def _room(self, known: Knowledge, nodes: tuple[Json, ...], seen: frozenset[str], did: str) -> None:
        """`nodes`: the node as the sender may have known it, and as it was. `seen`: whom it knew to be there, whoever
        placed them."""
        name = nodes[0]["metadata"]["name"]
        ours = {**({} if self._shares else self._bound), **known.bound_to}
        on = [
            pod
            for uid, pod in self.pods.items()
            if not ended(pod) and node_of(pod) in ("", name) and (ours.get(uid) == name or uid in seen)
        ]
        for resource in RESOURCES:
            used = sum((asks(pod, resource) for pod in on), Fraction(0))
            has = max(allocatable_of(node, resource) for node in (*nodes, self.nodes.get(name, nodes[0])))
            if used > has:
                self.object_to("I2", f"{did} {name}, which is over its {resource} by {float(used - has):g}")

    def _decision(self, details: tuple[str, str, str]) -> None:
        uid, node, policy_hash = details
        self._refused.pop(uid, None)
        if gang := gang_of(self.pods.get(uid, {"metadata": {}})):
            self._mates[gang].add(uid)
        self._decided[uid] = (node, policy_hash)
        tried_by = self._attempted.get(uid, policy_hash)
        if tried_by != policy_hash:
            self.object_to("I6", f"{uid} was tried by {tried_by:.12} and decided by {policy_hash:.12}")

    def _attempt(self, details: tuple[str, str]) -> None:
        self._attempted[details[0]] = details[1]

    def _rules_of(self, uid: str, pod: Json, name: str) -> None:
        _, policy_hash = self._decided.get(uid, ("", ""))
        policy = self._policies.get(policy_hash)
        if policy is not None and policy.nodes is not None and name not in policy.nodes:
            self.object_to("I6", f"{key_of(pod)} was sent to {name} in the name of {policy_hash:.12}, which forbids it")

    # ---- writes

    def _write(self, write: Any) -> None:
        if write.kind == "Lease":
            self._lease_written(write.after or {}, write.user_agent)
        if write.kind not in ("Pod", "Node"):
            return
        item = write.after or write.before
        table, key = (self.pods, item["metadata"]["uid"]) if write.kind == "Pod" else (self.nodes, write.name)
        if write.after is None:
            table.pop(key, None)
        else:
            table[key] = write.after
        if self._verifies:
            self._measure(node_of(item) if write.kind == "Pod" else write.name)
        if write.after is None:
            return
        if write.subresource == "binding" and write.user_agent.startswith("scheduler"):
            self._bound_in_our_name(write.user_agent, key, write.after)

    def _measure(self, name: str) -> None:
        """Whether the node is overfull, by a pod that gives way and has not begun to leave; what leaves before it began
        is as good as gone."""
        on = [pod for pod in self.pods.values() if node_of(pod) == name and not ended(pod)]
        there = [pod for pod in on if begun(pod) or not pod["metadata"].get("deletionTimestamp")]
        node = self.nodes.get(name)
        is_over = node is not None and any(
            sum((asks(pod, one) for pod in there), Fraction(0)) > allocatable_of(node, one) for one in RESOURCES
        )
        if is_over and any(gives_way(pod) for pod in there):
            self._overfull.setdefault(name, self.now)
        elif (since := self._overfull.pop(name, None)) is not None and self.now - since > OVERFULL:
            self.object_to("I10", f"{name} was overfull for {self.now - since:g} s")

    def _bound_in_our_name(self, who: str, uid: str, pod: Json) -> None:
        name = pod["spec"]["nodeName"]
        if uid in self._bound:
            self.object_to("I1", f"{key_of(pod)} was bound twice")
        self._bound[uid] = name
        if uid not in self._known[who].bound_to:
            self.object_to("I9", f"{key_of(pod)} was bound, and nothing was decided about it")
        grounds = self._known[who].grounds.pop((uid, name), None)
        if grounds is not None:  # what came while the request was on its way is nobody's fault
            self._room(self._known[who], *grounds, f"{key_of(pod)} was bound to")

    def _lease_written(self, lease: Json, by: str) -> None:
        before, self.lease = self.lease, lease.get("spec", {})
        if by == STRANGER:
            self._led = self._led or str(before.get("holderIdentity") or "")
            return
        old, new = before.get("holderIdentity"), self.lease.get("holderIdentity")
        held_until = self._leased_at + before.get("leaseDurationSeconds", 0) * (1.0 - self._slew) - INSTANT
        if self._led and self.now < self._renewed.get(self._led, -RENEW_DEADLINE) + RENEW_DEADLINE:
            old, held_until = self._led, self.now + INSTANT
        if old and new and old != new and self.now < held_until:
            self.object_to("I5", f"{new} took the lease of {old} before it had run out")
        self._leased_at, self._led = self.now, ""

    def _restored(self, details: tuple[dict[str, Json], dict[str, Json], Json]) -> None:
        """The server has gone back to a copy: pods by UID, nodes by name, the lease."""
        before, self.lease = self.lease, details[2].get("spec", {})
        self._led = str(before.get("holderIdentity") or self._led)
        if before != self.lease:
            self._leased_at = self.now
        self.pods, self.nodes = dict(details[0]), dict(details[1])
        self._bound = {uid: node for uid, node in self._bound.items() if node_of(self.pods.get(uid)) == node}
        self._held.clear()
        for known in self._known.values():
            known.forget()
        for table in (self._refused, self._mates, self._not_before):
            table.clear()

    def _stopped(self, seconds: float) -> None:
        """Everything stood still: what was shown right before is read after it."""
        self._held = deque((at + seconds, what, details) for at, what, details in self._held)

    def _ended(self, details: tuple[str, str]) -> None:
        self.object_to("I3", f"{details[0]} ended: {details[1]}")

    def _found(self, details: tuple[str, bool, str]) -> None:
        invariant, holds, what = details
        if not holds:
            self.object_to(invariant, f"it does not hold that {what}")

    # ---- the end

    def finish(self, now: float, cache: Mapping[str, Any] | None, serves: Mapping[str, Policy]) -> None:
        """`cache`: `pods` (UID -> node), `nodes` (name -> (millicores, cordoned)), `held` (UIDs with a reservation that
        is not being bound) of the replica that leads; None where none does. `serves`: scheduler name -> policy."""
        self.now = now
        for name, since in self._overfull.items():
            if now - since > OVERFULL:
                self.object_to("I10", f"{name} has been overfull for {now - since:g} s")
        LastLook(self.pods, self.nodes, self.object_to).take(cache, serves)
