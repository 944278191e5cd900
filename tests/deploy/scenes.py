"""What the docs say that each account of `deploy/` does, done on a server: goals that are reached, or not.

A scene is started once a run. Its objects carry the number of the run, so that runs on one server do not meet.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

from policyengine.cluster.kinds import BY_KIND, SCHEDULING_POLICIES
from policyengine.commands.policies import load_profiles
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.leader import LeaderElector, LeadershipLost
from policyengine.kube.leaders_transport import LeadersTransport
from policyengine.kube.scheduling import Scheduler
from policyengine.kube.stores import ConfigMapStore
from policyengine.kube.watching.reflector import Reflector
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import RecordEvent
from policyengine.server.annotator.annotations import Settings as AnnotatorSettings
from policyengine.server.annotator.annotator import Annotator
from policyengine.server.annotator.measurement import Measured, QueryRefused, SourceUnreachable
from policyengine.server.annotator.measuring import MetricsServer
from policyengine.server.callers import AccessRefused, Reviewer
from policyengine.server.extender.known_cluster import WatchedCluster
from policyengine.server.managed_certificate import CertificateStore
from policyengine.server.rewards.monitor import KEY, Monitor, Settings
from policyengine.simulator.sandbox import node
from tests.deploy.manifests import ROOT
from tests.deploy.scene_objects import (
    AT_ONCE,
    CLAIMS,
    CONFIGURATIONS,
    CORE,
    DEVICES,
    EVENTS,
    GROUPS,
    LEASES,
    MAPS,
    OWN_GROUPS,
    PODS,
    POLICIES,
    cluster,
    define,
    pod,
    pods,
    policy,
    scheduling_policy,
    undefine,
    with_left_over,
)
from tests.deploy.stage import Stage, Wire

GRACE = 1.5
"""Seconds within which what is told at once is known; far from those after which it would be asked for."""
SELECTED = "volume.kubernetes.io/selected-node"
Goal = Callable[[], Awaitable[bool]]
Scene = Callable[[Stage, Wire, str], Any]
"""(stage, the account's way, the run's number) -> a context with its goals by name."""


@cache
def profiles() -> tuple[Profile, ...]:
    """Together they read every kind."""
    return default_profile(), *load_profiles([ROOT / "policies" / "pod-groups.policy"], {}, run_tests=False)


@asynccontextmanager
async def scheduling(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """`policyengine run`, with all that it may have to do."""
    await cluster(stage, run)
    wire.lost.add(f"lost{run}")
    seed = random.Random(1)
    elector = LeaderElector(Client(wire), stage.clock, seed, f"run {run}")
    client = Client(LeadersTransport(wire, elector))
    scheduler = Scheduler(
        client, stage.clock, seed, profiles(), namespace="policyengine-policies", host="tests", elector=elector
    )
    stop = asyncio.Event()
    work = asyncio.create_task(scheduler.run(stop))
    for one in pods(run):
        await stage.call("POST", PODS, one)
    await with_left_over(stage, f"left{run}")
    await stage.call("POST", MAPS, policy(f"early{run}"))
    await stage.call("POST", POLICIES, scheduling_policy(f"early{run}"))
    come = asyncio.create_task(_come(stage, scheduler, run))

    async def of(path: str) -> Any:
        return await stage.call("GET", path)

    def there(path: str, *keys: str) -> Goal:
        """Whether an object has something in a field, or deeper."""

        async def reached() -> bool:
            found = await of(path)
            for key in keys:
                found = found.get(key) or {}
            return bool(found)

        return reached

    def placed(name: str) -> Goal:
        return there(f"{PODS}/{name}{run}", "spec", "nodeName")

    async def events(count: int) -> bool:
        items = (await of(EVENTS))["items"]
        about = [one for one in items if one["regarding"]["name"] == f"again{run}"]
        return any((one.get("series") or {"count": 1})["count"] >= count for one in about)

    async def gone() -> bool:
        items = (await of(f"{DEVICES}/namespaces/default/resourceclaims"))["items"]
        return all(one["metadata"]["name"] != f"left{run}" for one in items)

    async def accepted(name: str) -> bool:
        found = [one["metadata"] for one in (await of(MAPS))["items"] if one["metadata"]["name"] == f"{name}{run}"]
        return any("policyengine.io/status" in one.get("annotations", {}) for one in found)

    async def served(name: str) -> bool:
        found = [one for one in (await of(POLICIES))["items"] if one["metadata"]["name"] == f"{name}{run}"]
        return any("conditions" in one.get("status", {}) for one in found)

    async def renewed() -> bool:
        leases = [one["spec"] for one in (await of(LEASES))["items"] if one["metadata"]["name"] == "policyengine"]
        return any(spec["renewTime"] != spec["acquireTime"] for spec in leases)

    async def followed() -> bool:
        kinds = [one.resource for one in scheduler.runner.informers.reflectors]
        failing = [one for one in scheduler.runner.informers.reflectors if one.failing_since is not None]
        watches = {(kind.group, kind.plural, "watch") for kind in kinds}
        return not failing and watches <= wire.used

    try:
        yield {
            "a pod is bound": placed("plain"),
            "a pod whose binding got no answer is bound": placed("lost"),
            "a pod says why it waits": there(f"{PODS}/huge{run}", "status", "conditions"),
            "an event is there": lambda: events(1),
            "an event that comes again is counted": lambda: events(2),
            "a victim goes": there(f"{PODS}/victim{run}", "metadata", "deletionTimestamp"),
            "a volume is taken": there(f"{CORE}/persistentvolumes/disk{run}", "spec", "claimRef"),
            "a claim gets its node": there(f"{CLAIMS}/made{run}", "metadata", "annotations", SELECTED),
            "a pod gets its device": placed("takes"),
            "a pod gets a device for an extended resource": placed("asks"),
            "a claim that an attempt left goes": gone,
            "a group's status is counted": there(f"{GROUPS}/crew{run}", "status", "scheduled"),
            "a group of Kubernetes' own has its condition": there(f"{OWN_GROUPS}/crew{run}", "status", "conditions"),
            "a policy is accepted": lambda: accepted("early"),
            "a policy that comes later is accepted": lambda: accepted("later"),
            "a SchedulingPolicy is accepted": lambda: served("early"),
            "a SchedulingPolicy that comes later is accepted": lambda: served("later"),
            "the lease is renewed": renewed,
            "what changes is followed": followed,
        }
    finally:
        stop.set()
        come.cancel()
        with suppress(LeadershipLost, asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(work, 2)
        with suppress(ApiError):
            await stage.call("DELETE", f"{LEASES}/policyengine")
        for path in (PODS, CLAIMS, MAPS, POLICIES, GROUPS, OWN_GROUPS, f"{CORE}/nodes", f"{CORE}/persistentvolumes"):
            await stage.call("DELETE", path, AT_ONCE)


async def _come(stage: Stage, scheduler: Scheduler, run: str) -> None:
    await scheduler.reloader.settled.wait()
    await stage.call("POST", MAPS, policy(f"later{run}"))
    await stage.call("POST", POLICIES, scheduling_policy(f"later{run}"))
    again = RecordEvent("", "default", f"again{run}", "", "Normal", "Tried", "Trying", "once more", "default-scheduler")
    while True:
        scheduler.runner.writer.events.record(again)
        await asyncio.sleep(0.5)


@asynccontextmanager
async def defining(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """Kinds that are absent, and whose definitions are applied while they are followed."""
    await undefine(stage)
    followed = [
        Reflector(Client(wire), kind, stage.clock, random.Random(1), namespace=namespace)
        for kind, namespace in ((BY_KIND["PodGroup"], "default"), (SCHEDULING_POLICIES, "policyengine-policies"))
    ]

    async def follow(one: Reflector[Any]) -> None:
        async for _ in one.batches():
            pass

    async def come() -> bool:
        for one in followed:
            await one.synced.wait()
        await asyncio.sleep(GRACE)  # what asks every few seconds does so then
        await define(stage)
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": f"new{run}"}}
        await stage.call("POST", GROUPS, group | {"spec": {"minMember": 1}})
        await stage.call("POST", POLICIES, scheduling_policy(f"new{run}"))
        await asyncio.sleep(GRACE)
        return all(len(one.store) for one in followed)

    work = [asyncio.create_task(follow(one)) for one in followed]
    found = asyncio.create_task(come())

    async def at_once() -> bool:
        return found.done() and found.result()

    try:
        yield {"a kind that is defined later is found at once": at_once}
    finally:
        for task in work:
            task.cancel()
        await found
        for path in (GROUPS, POLICIES):
            await stage.call("DELETE", path, AT_ONCE)


class Measures:
    """A source that measures every node."""

    async def measure(self, now: float, nodes: Mapping[str, Any]) -> Measured:
        return Measured({"cpu": {name: [(now, 1.0)] for name in nodes}})

    async def close(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def annotating(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """`policyengine annotate`, by Prometheus and by metrics.k8s.io, which this server does not serve."""
    name, client = f"annotated{run}", Client(wire)
    await stage.call("POST", f"{CORE}/nodes", node(name, "a"))

    async def annotated() -> bool:
        with suppress(ApiError):
            await Annotator(Measures(), client, stage.clock, AnnotatorSettings(requested=True)).round()
        return bool((await stage.call("GET", f"{CORE}/nodes/{name}"))["metadata"].get("annotations"))

    async def asked() -> bool:
        try:
            await MetricsServer(client, 60.0).measure(0.0, {})
        except (SourceUnreachable, QueryRefused) as error:
            return isinstance(error, SourceUnreachable)
        return True

    yield {"a node is annotated": annotated, "metrics.k8s.io answers": asked}


@asynccontextmanager
async def rewarding(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """`policyengine rewards`."""
    name, path = f"rewarded{run}", f"{CORE}/namespaces/kube-system/configmaps/policyengine-rewards"
    await stage.call("POST", f"{CORE}/nodes", node(name, "a"))
    item = pod(name, nodeName=name)
    item["metadata"]["labels"] = {"app": name}
    await stage.call("POST", PODS, item)
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    container = {"name": "main", "restartCount": 2, "lastState": killed, "ready": True, "image": "i", "imageID": "i"}
    status = {"phase": "Running", "containerStatuses": [container]}
    await stage.call("PATCH", f"{PODS}/{name}/status", {"status": status})
    store = ConfigMapStore(Client(wire), "kube-system", "policyengine-rewards", KEY)
    monitor = Monitor(Client(wire), store, stage.clock, random.Random(1), Settings(interval=0.2))
    work = asyncio.create_task(monitor.run(asyncio.Event()))

    async def written() -> bool:
        return bool((await stage.call("GET", f"{CORE}/nodes/{name}"))["metadata"].get("annotations"))

    async def kept() -> bool:
        return name in str((await stage.call("GET", path)).get("data"))

    async def followed() -> bool:
        kinds = (("", "pods"), ("", "nodes"), ("events.k8s.io", "events"))
        return all((group, plural, "watch") in wire.used for group, plural in kinds)

    try:
        yield {"a node is annotated": written, "what was learnt is kept": kept, "what changes is followed": followed}
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await stage.call("DELETE", f"{PODS}/{name}", AT_ONCE)


OF_TEAMS = compile_policy('policy "p" { base none filter "own" { require pod.namespaceLabels.size() > 0 } }')


@asynccontextmanager
async def extending(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """`policyengine extender` with a cluster."""
    watched = WatchedCluster(Client(wire), stage.clock, random.Random(1), (OF_TEAMS,))
    work = asyncio.create_task(watched.run())

    async def ready() -> bool:
        return watched.is_ready

    async def followed() -> bool:
        return {("", kind, "watch") for kind in ("nodes", "pods", "namespaces")} <= wire.used

    try:
        yield {"requests are answered": ready, "what changes is followed": followed}
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


@asynccontextmanager
async def certifying(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """`policyengine webhook --tls-secret`, with a Secret that is empty and a configuration that trusts nobody."""
    secret = f"{CORE}/namespaces/kube-system/secrets/policyengine-webhook"
    await stage.call("PATCH", secret, {"data": None})
    hooks = (await stage.call("GET", f"{CONFIGURATIONS}/policyengine"))["webhooks"]
    hooks[0]["clientConfig"].pop("caBundle", None)
    await stage.call("PATCH", f"{CONFIGURATIONS}/policyengine", {"webhooks": hooks})
    store = CertificateStore(
        Client(wire), stage.clock, "kube-system", "policyengine-webhook", "policyengine-webhook", "policyengine"
    )
    work = asyncio.create_task(store.current())

    async def made() -> bool:
        return "tls.crt" in ((await stage.call("GET", secret)).get("data") or {})

    async def trusted() -> bool:
        (hook,) = (await stage.call("GET", f"{CONFIGURATIONS}/policyengine"))["webhooks"]
        issued = (await stage.call("GET", secret)).get("data") or {}
        return bool(issued) and hook["clientConfig"].get("caBundle") == issued["ca.crt"]

    try:
        yield {"a certificate is made": made, "it is trusted": trusted}
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


@asynccontextmanager
async def reviewing(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """Pages that ask who calls: this one is known, and may not get the page."""

    async def answered() -> bool:
        try:
            await Reviewer(Client(wire)).check(stage.tokens["policyengine-annotator"], "get", "/metrics")
        except AccessRefused as error:
            return error.status == 403
        return False

    yield {"a caller is known": answered}
