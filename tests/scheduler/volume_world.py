"""The naive cluster with storage: claims, volumes, patches that go wrong, a volume controller and a provisioner.

Claims `a`, `b`, `c` want a static volume, `x` and `y` one that is made. Volumes `v1` to `v3` are there; each is
reached from one node, or from all.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from policyengine.scheduler.actions import Action, PatchObject
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    Message,
    NodeObserved,
    ObjectPatched,
    ObjectPatchFailed,
)
from tests.builders import PodBuilder, make_node
from tests.scheduler.driver import Driver
from tests.scheduler.storage import claim, seen, storage_class, volume
from tests.scheduler.world import World

STATIC, MADE = ("a", "b", "c"), ("x", "y")


class VolumeWorld(World):
    """`claims` and `volumes` are the server's."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.claims: dict[str, dict[str, Any]] = {}
        self.volumes: dict[str, dict[str, Any]] = {}
        self.storage: deque[Message] = deque()
        """The watches of claims and volumes, apart from that of pods and nodes."""
        self.object_patches: deque[PatchObject] = deque()
        self.late_patches: list[PatchObject] = []
        self.taken_twice: list[str] = []
        self.bound_too_early: list[str] = []
        self._under_way: dict[tuple[str, str], PatchObject] = {}
        self.storage.extend(seen(storage_class("local"), storage_class("made", "example.com/disks")))
        for name in (*STATIC, *MADE):
            self.claims[name] = {"volume": "", "node": ""}
            self._show_claim(name)

    # ---- what users and controllers do

    def set_node(self, name: str, cpu: int, cordoned: bool) -> None:
        self.nodes[name] = {"cpu": cpu, "cordoned": cordoned}
        builder = make_node(name).capacity(cpu=f"{cpu}", memory="64Gi", pods="110").unschedulable(cordoned)
        builder.label("kubernetes.io/hostname", name)
        self.watch.append(NodeObserved(self._next_version(builder).build()))

    def create_pod_with(self, cpu: int, *claims: str) -> None:
        self.create_pod(cpu, claims=claims)

    def set_volume(self, name: str, node: str) -> None:
        """Somebody makes a volume, once."""
        if name not in self.volumes:
            self.volumes[name] = {"node": node, "claim": "", "of": "local"}
            self._show_volume(name)

    def touch_volume(self, name: str) -> None:
        if name in self.volumes:
            self._show_volume(name)

    def control(self) -> None:
        """The volume controller binds what was written."""
        for name, found in self.volumes.items():
            if found["claim"] and not self.claims[found["claim"]]["volume"]:
                self.claims[found["claim"]]["volume"] = name
                self._show_claim(found["claim"])

    def provision(self, works: bool) -> None:
        """The provisioner makes what was asked for, or says that it cannot."""
        for name in MADE:
            wanted = self.claims[name]
            if not wanted["node"] or wanted["volume"]:
                continue
            if works:
                self.volumes[f"new-{name}"] = {"node": wanted["node"], "claim": name, "of": "made"}
                wanted["volume"] = f"new-{name}"
                self._show_volume(f"new-{name}")
            else:
                wanted["node"] = ""
            self._show_claim(name)

    # ---- what the machinery does

    def deliver_storage(self, count: int) -> None:
        for _ in range(min(count, len(self.storage))):
            self.send(self.storage.popleft())

    def answer_patch(self, how: str) -> None:
        if not self.object_patches:
            return
        asked = self.object_patches.popleft()
        if how in ("refused", "overloaded"):
            failure = BindFailure.REFUSED if how == "refused" else BindFailure.OVERLOADED
            self.send(ObjectPatchFailed(asked, failure, how))
        elif how == "lost and landed":
            self._patch(asked)
            self.send(ObjectPatchFailed(asked, BindFailure.OVERLOADED, "no answer"))
        elif how == "lost and late":
            self.late_patches.append(asked)
            self.send(ObjectPatchFailed(asked, BindFailure.OVERLOADED, "no answer"))
        else:
            self.send(self._patch(asked))

    def land_late(self) -> None:
        super().land_late()
        for asked in self.late_patches:
            self._patch(asked)
        self.late_patches.clear()

    def _pipes(self) -> bool:
        return super()._pipes() or bool(self.storage or self.object_patches)

    def _arrive(self) -> None:
        super()._arrive()
        self.deliver_storage(100)
        self.answer_patch("made")
        self.control()
        self.provision(works=True)

    def shown_to(self, driver: Driver) -> list[Action]:
        """What a scheduler that is started now makes of the cluster."""
        fresh = VolumeWorld(driver)
        fresh._version = self._version + 1
        fresh.storage.clear()
        fresh.storage.extend(seen(storage_class("local"), storage_class("made", "example.com/disks")))
        fresh.nodes, fresh.pods, fresh.claims, fresh.volumes = self.nodes, self.pods, self.claims, self.volumes
        for name, found in list(self.nodes.items()):
            fresh.set_node(name, found["cpu"], found["cordoned"])
        for name in self.volumes:
            fresh._show_volume(name)
        for name in self.claims:
            fresh._show_claim(name)
        for uid in self.pods:
            fresh._show(uid)
        fresh.deliver_storage(1000)
        fresh.deliver(1000)
        fresh.actions.clear()
        fresh.cycle(1000)
        return fresh.actions

    # ---- details

    def _patch(self, asked: PatchObject) -> ObjectPatched | ObjectPatchFailed:
        patch = asked.patch
        found = self.volumes.get(patch.name) if patch.kind == "PersistentVolume" else self.claims[patch.name]
        if found is None or str(found["version"]) != patch.resource_version:
            return ObjectPatchFailed(asked, BindFailure.CONFLICT, "the object has been modified")
        body: Any = patch.patch
        if patch.kind == "PersistentVolume":
            taken_by = body["spec"]["claimRef"]["name"]
            if found["claim"] not in ("", taken_by):
                self.taken_twice.append(patch.name)
            found["claim"] = taken_by
            self._show_volume(patch.name)
        else:
            found["node"] = body["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
            self._show_claim(patch.name)
        return ObjectPatched(asked, str(found["version"]))

    def _take(self, actions: list[Action]) -> None:
        super()._take(actions)
        for action in actions:
            if isinstance(action, PatchObject):
                self.object_patches.append(action)
                self._note(action)

    def _note(self, asked: PatchObject) -> None:
        """Two decisions that stand never ask for one version of one object."""
        key = (asked.patch.kind, asked.patch.name)
        before = self._under_way.get(key)
        if (
            before is not None
            and before.uid != asked.uid
            and before.patch.resource_version == asked.patch.resource_version
        ):
            decision = self.driver.state._core.bindings.get(before.uid)
            if decision is not None and decision.number == before.decision:
                self.taken_twice.append(asked.patch.name)
        self._under_way[key] = asked

    def _carry_out(self, bind: Any) -> BindSucceeded | BindFailed:
        answer = super()._carry_out(bind)
        if isinstance(answer, BindSucceeded):
            for name in self.pods[bind.uid].get("claims", ()):
                bound = self.volumes.get(self.claims[name]["volume"])
                if bound is None or bound["node"] not in ("", bind.node):
                    self.bound_too_early.append(bind.uid)
        return answer

    def _builder(self, uid: str) -> PodBuilder:
        builder = super()._builder(uid)
        for name in self.pods[uid].get("claims", ()):
            builder.pvc(name)
        return builder

    def _show_claim(self, name: str) -> None:
        self._version += 1
        found = self.claims[name]
        found["version"] = self._version
        of, bound = "made" if name in MADE else "local", bool(found["volume"])
        item = claim(name, self._version, of=of, volume=found["volume"], node=found["node"], bound=bound)
        self.storage.extend(seen(item))

    def _show_volume(self, name: str) -> None:
        self._version += 1
        found = self.volumes[name]
        found["version"] = self._version
        item = volume(name, self._version, of=found["of"], node=found["node"], taken_by=found["claim"])
        self.storage.extend(seen(item))
