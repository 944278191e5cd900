"""What a replica asked, and what it could know: the ground on which the auditor judges it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.faults.facts import Json, node_of

LANDS_WITHIN = 60.0
"""Seconds after which a request without an answer can take effect no more."""


@dataclass(frozen=True)
class Policy:
    """What the auditor is told of a policy: where its pods may stand; None for anywhere."""

    scheduler: str
    nodes: frozenset[str] | None = None


@dataclass
class Call:
    """A request as a replica's wire saw it. `status` 0: no answer."""

    who: str
    method: str
    path: str
    body: Json = field(default_factory=dict)
    status: int = 0
    retry_after: float = 0.0

    @property
    def is_binding(self) -> bool:
        return self.path.endswith("/binding")

    @property
    def is_lease(self) -> bool:
        return "/leases" in self.path

    @property
    def uid(self) -> str:
        """Of the pod it is about, so that a namesake's request is another one; empty where it names none."""
        body = self.body if isinstance(self.body, dict) else {}  # a JSON patch is a list
        return str(body.get("metadata", {}).get("uid", ""))


@dataclass
class Knowledge:
    """What one replica has been shown, each object at its newest version."""

    pods: dict[str, Json] = field(default_factory=dict)
    nodes: dict[str, Json] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    bound_to: dict[str, str] = field(default_factory=dict)
    """UID -> node of bindings it sent that may hold."""
    unknown: dict[str, tuple[str, float]] = field(default_factory=dict)
    """UID -> (node, since when) of bindings it sent and got no answer for."""
    on_the_way: set[str] = field(default_factory=set)
    """UIDs of bindings it sent that are not answered yet."""
    reads: dict[tuple[str, str], float] = field(default_factory=dict)
    """(namespace, name) of pods it read -> when the read that was answered last was asked for."""
    grounds: dict[tuple[str, str], tuple[tuple[Json, ...], frozenset[str]]] = field(default_factory=dict)
    """(UID, node's name) of a binding it sent -> the node as it knew it and as it was then, and the UIDs that it knew
    to be there."""

    def show(self, kind: str, what: str, item: Json) -> None:
        meta = item["metadata"]
        table, key = (self.pods, meta["uid"]) if kind == "pods" else (self.nodes, meta["name"])
        version = int(meta["resourceVersion"])
        known = table.get(key)
        if known is not None and int(known["metadata"]["resourceVersion"]) >= version:
            return
        if self.gone.get(meta["uid"], -1) >= version:
            return
        if what == "DELETED":
            table.pop(key, None)
            self.gone[meta["uid"]] = version
        else:
            table[key] = item
        if kind == "pods":
            self._replace_namesakes(meta)
            if node_of(item):
                self.unknown.pop(key, None)  # it has landed, and will not land again

    def _replace_namesakes(self, meta: Json) -> None:
        for uid, pod in list(self.pods.items()):
            other = pod["metadata"]
            same = (other["namespace"], other["name"]) == (meta["namespace"], meta["name"])
            if same and uid != meta["uid"] and int(other["resourceVersion"]) < int(meta["resourceVersion"]):
                del self.pods[uid]

    def settle(self, pod: Json) -> None:
        """It was shown a pod by a read. Where that was asked for when nothing that was sent before could land any more,
        and the pod stands nowhere, its binding does not hold, and never will."""
        meta = pod["metadata"]
        uid, asked = meta["uid"], self.reads.get((meta["namespace"], meta["name"]), 0.0)
        node, since = self.unknown.get(uid, ("", asked))
        if uid not in self.on_the_way and not node_of(pod) and asked >= since + LANDS_WITHIN:
            del self.unknown[uid], self.bound_to[uid]
            self.grounds.pop((uid, node), None)

    def forget(self) -> None:
        """The server has gone back: any version of what it was shown is newer, and what it sent does not hold, but for
        what it has no answer for."""
        for shown in (self.pods, self.nodes):
            for key, item in shown.items():
                shown[key] = {**item, "metadata": {**item["metadata"], "resourceVersion": "0"}}
        for past in (self.gone, self.reads, self.grounds):
            past.clear()
        self.bound_to = {uid: node for uid, node in self.bound_to.items() if uid in {*self.unknown, *self.on_the_way}}

    def on(self, node: str) -> frozenset[str]:
        """UIDs of the pods that it has been shown on the node."""
        return frozenset(uid for uid, pod in self.pods.items() if node_of(pod) == node)

    def listed(self, kind: str, keys: set[str], version: int) -> None:
        """A whole list was shown: what it has not is gone, unless it is newer."""
        table = self.pods if kind == "pods" else self.nodes
        for key, item in list(table.items()):
            if key not in keys and int(item["metadata"]["resourceVersion"]) <= version:
                del table[key]
