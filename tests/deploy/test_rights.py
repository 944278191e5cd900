"""Every right that `deploy/` gives is needed: without it something that the docs promise does not happen."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from deploy.rights import files
from policyengine.kube.http.client import Client
from policyengine.kube.notices import PERIOD
from policyengine.kube.scheduling import Scheduler
from policyengine.simulator.real_server import ASSETS
from tests.deploy import rights, scene_objects, scenes
from tests.deploy.manifests import DEPLOY, documents
from tests.deploy.rights import Grant, grants
from tests.deploy.stage import Stage, embedded, real
from tests.kube.virtual_time import run

FOLLOWED, BOUND = "what changes is followed", "a pod is bound"
PATIENCE = 30.0
"""Seconds within which a goal is reached, or the right that is missing is missed."""
EVERY = bool(os.environ.get("EVERY_RIGHT"))
SOME = ("nodes", "pods/binding", "leases")
"""Kinds are listed and watched by one table and one reader: unless `$EVERY_RIGHT` is set, one stands for all."""
GRACE = 0.5
"""Seconds after that in which no goal may be reached."""
SCENES: dict[str, dict[tuple[str, str] | str, tuple[scenes.Scene, str]]] = {
    "policyengine": {
        "list": (scenes.scheduling, BOUND),
        "watch": (scenes.scheduling, FOLLOWED),
        ("pods", "get"): (scenes.scheduling, "a pod whose binding got no answer is bound"),
        ("pods/binding", "create"): (scenes.scheduling, BOUND),
        ("pods/status", "patch"): (scenes.scheduling, "a pod says why it waits"),
        ("pods", "delete"): (scenes.scheduling, "a victim goes"),
        ("events", "create"): (scenes.scheduling, "an event is there"),
        ("events", "patch"): (scenes.scheduling, "an event that comes again is counted"),
        ("persistentvolumes", "patch"): (scenes.scheduling, "a volume is taken"),
        ("persistentvolumeclaims", "patch"): (scenes.scheduling, "a claim gets its node"),
        ("resourceclaims", "patch"): (scenes.scheduling, "a pod gets its device"),
        ("resourceclaims", "create"): (scenes.scheduling, "a pod gets a device for an extended resource"),
        ("resourceclaims", "delete"): (scenes.scheduling, "a claim that an attempt left goes"),
        ("resourceclaims/status", "patch"): (scenes.scheduling, "a pod gets its device"),
        ("resourceclaims/binding", "patch"): (scenes.scheduling, "a pod gets its device"),
        ("podgroups/status", "patch"): (scenes.scheduling, "a group's status is counted"),
        ("own podgroups/status", "patch"): (scenes.scheduling, "a group of Kubernetes' own has its condition"),
        ("configmaps", "list"): (scenes.scheduling, "a policy is accepted"),
        ("configmaps", "watch"): (scenes.scheduling, "a policy that comes later is accepted"),
        ("configmaps", "patch"): (scenes.scheduling, "a policy is accepted"),
        ("schedulingpolicies", "list"): (scenes.scheduling, "a SchedulingPolicy is accepted"),
        ("schedulingpolicies", "watch"): (scenes.scheduling, "a SchedulingPolicy that comes later is accepted"),
        ("schedulingpolicies/status", "patch"): (scenes.scheduling, "a SchedulingPolicy is accepted"),
        ("customresourcedefinitions", "watch"): (scenes.defining, "a kind that is defined later is found at once"),
        ("leases", "create"): (scenes.scheduling, BOUND),
        ("leases", "get"): (scenes.scheduling, BOUND),
        ("leases", "update"): (scenes.scheduling, "the lease is renewed"),
        ("tokenreviews", "create"): (scenes.reviewing, "a caller is known"),
        ("subjectaccessreviews", "create"): (scenes.reviewing, "a caller is known"),
    },
    "policyengine-annotator": {
        ("nodes", "list"): (scenes.annotating, "a node is annotated"),
        ("nodes", "patch"): (scenes.annotating, "a node is annotated"),
        ("pods", "list"): (scenes.annotating, "a node is annotated"),
        ("metrics", "list"): (scenes.annotating, "metrics.k8s.io answers"),
    },
    "policyengine-rewards": {
        "list": (scenes.rewarding, "a node is annotated"),
        "watch": (scenes.rewarding, FOLLOWED),
        ("events", "list"): (scenes.rewarding, FOLLOWED),
        ("nodes", "patch"): (scenes.rewarding, "a node is annotated"),
        ("configmaps", "get"): (scenes.rewarding, "what was learnt is kept"),
        ("configmaps", "patch"): (scenes.rewarding, "what was learnt is kept"),
    },
    "policyengine-extender": {
        "list": (scenes.extending, "requests are answered"),
        "watch": (scenes.extending, FOLLOWED),
    },
    "policyengine-webhook": {
        ("secrets", "get"): (scenes.certifying, "a certificate is made"),
        ("secrets", "update"): (scenes.certifying, "a certificate is made"),
        ("validatingwebhookconfigurations", "get"): (scenes.certifying, "it is trusted"),
        ("validatingwebhookconfigurations", "patch"): (scenes.certifying, "it is trusted"),
    },
}
"""Account -> (resource, verb), or a verb -> the scene and the goal that is not reached without it."""


def needed_for(grant: Grant) -> tuple[scenes.Scene, str]:
    resource = "metrics" if grant.group == "metrics.k8s.io" else grant.resource
    if grant.group == scene_objects.NATIVE and resource == "podgroups/status":
        resource = f"own {resource}"
    of_account = SCENES[grant.account]
    return of_account.get((resource, grant.verb)) or of_account[grant.verb]


def test_the_files_are_those_that_the_table_of_kinds_makes() -> None:
    assert [path.name for path, text in files().items() if path.read_text() != text] == []


def test_no_rule_is_a_wildcard() -> None:
    assert all("*" not in grant.right for grant in grants())


async def with_everything(stage: Stage) -> None:
    """Every goal is reached, with the rights that are given and no others."""
    for account, of_account in SCENES.items():
        wires = []
        for scene in dict.fromkeys(scene for scene, _ in of_account.values()):
            wire = stage.wire(account)
            wires.append(wire)
            stage.runs += 1
            async with scene(stage, wire, str(stage.runs)) as goals, asyncio.timeout(PATIENCE):
                waiting = dict(goals)
                while waiting:
                    waiting = {name: goal for name, goal in waiting.items() if not await goal()}
                    await asyncio.sleep(0.1)
            assert wire.refused == []
        used = set().union(*(wire.used for wire in wires)) | {("resource.k8s.io", "resourceclaims/binding", "patch")}
        needed = {grant.right for grant in grants() if grant.account == account}
        assert needed <= used


async def without(stage: Stage, grant: Grant) -> None:
    """The goal is not reached, and the server says that this right is missing."""
    scene, name = needed_for(grant)
    await rights.apply(stage.admin, rights.without(grant))
    await rights.until(stage.admin, grant, holds=False)
    stage.runs += 1
    wire = stage.wire(grant.account)
    try:
        async with scene(stage, wire, str(stage.runs)) as goals, asyncio.timeout(PATIENCE):
            while not wire.was_refused.is_set():
                assert not await goals[name](), f"{grant} is given in vain"
                await asyncio.sleep(0.1)
            await asyncio.sleep(GRACE)
            assert not await goals[name](), f"{grant} is missed, and not needed"
        told = f'cannot {grant.verb} resource \\"{grant.resource}\\" in API group \\"{grant.group}\\"'
        assert all(told in one for one in wire.refused), (grant, wire.refused)
    finally:
        await rights.apply(stage.admin, rights.role_of(grant))
        await rights.until(stage.admin, grant, holds=True)


async def all_of_them(server: Callable[[], AbstractAsyncContextManager[Stage]]) -> None:
    async with server() as stage:
        await scene_objects.begin(stage)
        await with_everything(stage)
        for grant in grants():
            is_asked = EVERY or needed_for(grant)[1] not in (BOUND, FOLLOWED) or grant.resource in SOME
            if is_asked:
                await without(stage, grant)


def test_each_right_is_needed_for_something_that_is_documented() -> None:
    run(all_of_them(embedded))


@pytest.mark.skipif(not os.environ.get(ASSETS), reason=f"${ASSETS} names no folder with etcd and kube-apiserver")
async def test_the_same_on_the_real_server() -> None:
    await all_of_them(real)


async def told_where_nobody_reads(*more: str) -> set[str]:
    """What is told of a ConfigMap and a SchedulingPolicy in another namespace, by `deploy/` and these manifests."""
    async with embedded() as stage:
        await scene_objects.begin(stage)
        for path in more:
            for one in documents(DEPLOY / path):
                await rights.apply(stage.admin, one)
        await stage.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        for path, made in (
            (scene_objects.MAPS, scene_objects.policy("map")),
            (scene_objects.POLICIES, scene_objects.scheduling_policy("object")),
        ):
            await stage.call("POST", path.replace("policyengine-policies", "team"), made)
        wire, stop = stage.wire("policyengine"), asyncio.Event()
        given: dict[str, Any] = {"namespace": "policyengine-policies", "host": "tests", "with_notices": True}
        scheduler = Scheduler(Client(wire), stage.clock, random.Random(1), scenes.profiles(), **given)
        work = asyncio.create_task(scheduler.run(stop))
        await asyncio.sleep(5 * PERIOD)
        stop.set()
        await work
        assert wire.refused == []
        events = (await stage.call("GET", scene_objects.EVENTS.replace("default", "team")))["items"]
        return {one["regarding"]["name"] for one in events if one["reason"] == "PolicyNotRead"}


def test_a_policy_where_nobody_reads_is_told_so_with_the_right_to_look_there_and_not_without() -> None:
    assert run(told_where_nobody_reads()) == set()
    assert run(told_where_nobody_reads("overlays/other-namespaces/rbac.yaml")) == {"map", "object"}


def test_the_scheduler_reads_no_secret_and_writes_nothing_but_what_scheduling_writes() -> None:
    ours = [grant for grant in grants() if grant.account == "policyengine"]
    assert not any(grant.resource == "secrets" for grant in ours)
    written = {
        (grant.resource, grant.verb, grant.namespace) for grant in ours if grant.verb not in ("get", "list", "watch")
    }
    assert written == {
        *(("pods/binding", "create", ""), ("pods/status", "patch", ""), ("pods", "delete", "")),
        *(("events", "create", ""), ("events", "patch", "")),
        *(("persistentvolumes", "patch", ""), ("persistentvolumeclaims", "patch", "")),
        *((f"resourceclaims{part}", "patch", "") for part in ("", "/status", "/binding")),
        *(("resourceclaims", "create", ""), ("resourceclaims", "delete", "")),
        ("podgroups/status", "patch", ""),
        ("configmaps", "patch", "policyengine-policies"),
        ("schedulingpolicies/status", "patch", "policyengine-policies"),
        *(("leases", "create", "kube-system"), ("leases", "update", "kube-system")),
        *(("tokenreviews", "create", ""), ("subjectaccessreviews", "create", "")),
    }
