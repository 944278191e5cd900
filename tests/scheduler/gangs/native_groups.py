"""PodGroups of Kubernetes' own, for tests: a group's object, its pods, and what was written of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, PatchObject
from policyengine.scheduler.messages import ObjectObserved
from tests.builders import PodBuilder
from tests.scheduler.driver import Driver, pod

NAME = "pod-group-scheduler"
TEXT = (Path(__file__).parents[3] / "policies" / "pod-groups.policy").read_text(encoding="utf-8")


_compiled = cache(compile_policy)


def scheduler(policy: str = TEXT, synced: bool = True) -> Driver:
    return Driver(_compiled(policy), synced=synced)


def member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return pod(name, cpu).scheduler(NAME).set("spec.schedulingGroup", {"podGroupName": group})


def show_group(
    driver: Driver,
    minimum: int | None = 2,
    version: int = 1,
    conditions: Sequence[dict[str, Any]] = (),
    name: str = "crew",
    form: type[NativePodGroup] = NativePodGroup,
    **spec: Any,
) -> list[Action]:
    """`minimum`: None for a group that is no gang."""
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version), "generation": 1}
    spec["schedulingPolicy"] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    json = {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}
    return driver.send(ObjectObserved("NativePodGroup", decode(form, json)))


def written(actions: Sequence[Action]) -> list[list[dict[str, Any]]]:
    """The lists of conditions that were to be written."""
    patches = [action.patch for action in actions if isinstance(action, PatchObject)]
    assert all(patch.kind == "NativePodGroup" and patch.subresource == "status" for patch in patches)
    return [list(patch.patch["status"]["conditions"]) for patch in patches]  # type: ignore[index]


def said(actions: Sequence[Action]) -> list[tuple[str, str, str]]:
    """Status, reason and message of each PodGroupScheduled that was to be written."""
    found = [one for many in written(actions) for one in many if one["type"] == "PodGroupScheduled"]
    return [(one["status"], one["reason"], one.get("message", "")) for one in found]
