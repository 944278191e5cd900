"""What the docs say that each account of `deploy/` does, done on a server: goals that are reached, or not.

A scene is started once a run. Its objects carry the number of the run, so that runs on one server do not meet.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

import yaml

from policyengine.commands.policies import load_profiles
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.leader import LeaderElector, LeadershipLost, LeadersTransport
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import RecordEvent
from policyengine.server.annotator.annotations import Settings as AnnotatorSettings
from policyengine.server.annotator.annotator import Annotator
from policyengine.server.annotator.source import Measured, QueryRefused, SourceUnreachable
from policyengine.server.annotator.sources import MetricsServer
from policyengine.server.callers import AccessRefused, Reviewer
from policyengine.server.extender.cluster import WatchedCluster
from policyengine.server.managed_certificate import CertificateStore
from policyengine.server.rewards.monitor import Monitor, Settings
from policyengine.server.rewards.stores import ConfigMapStore
from policyengine.simulator.sandbox import node
from tests.deploy.manifests import DEPLOY, ROOT
from tests.deploy.stage import Stage, Wire

CORE, NATIVE = "/api/v1", "scheduling.k8s.io"
PODS, CLAIMS = f"{CORE}/namespaces/default/pods", f"{CORE}/namespaces/default/persistentvolumeclaims"
MAPS = f"{CORE}/namespaces/policyengine-policies/configmaps"
POLICIES = "/apis/policyengine.io/v1alpha1/namespaces/policyengine-policies/schedulingpolicies"
STORAGE, DEVICES = "/apis/storage.k8s.io/v1/storageclasses", "/apis/resource.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
OWN_GROUPS = f"/apis/{NATIVE}/v1alpha2/namespaces/default/podgroups"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
GPU = "gpu.example.com"
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}

Goal = Callable[[], Awaitable[bool]]
Scene = Callable[[Stage, Wire, str], Any]
"""(stage, the account's way, the run's number) -> a context with its goals by name."""


@cache
def profiles() -> tuple[Profile, ...]:
    """Together they read every kind."""
    return default_profile(), *load_profiles([ROOT / "policies" / "pod-groups.policy"], {}, run_tests=False)


async def begin(stage: Stage) -> None:
    """What all runs share: two kinds of PodGroup, classes, a node, and what the webhook trusts."""
    crd = yaml.safe_load((DEPLOY / "base" / "podgroups.yaml").read_text())
    ours = yaml.safe_load((DEPLOY / "base" / "schedulingpolicies.yaml").read_text())
    for one in (crd, _native(crd), ours):
        await stage.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
    assert all([await _is_served(stage, path) for path in (GROUPS, OWN_GROUPS, POLICIES)])
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "example.com/disks")):
        item = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await stage.call("POST", STORAGE, item)
    selector = {"cel": {"expression": f'device.driver == "{GPU}"'}}
    await stage.call(
        "POST", f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
    )
    await stage.call("POST", CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    await stage.call(
        "POST", f"{CORE}/namespaces/kube-system/configmaps", {"metadata": {"name": "policyengine-rewards"}}
    )
    secret = {"metadata": {"name": "policyengine-webhook"}, "type": "Opaque"}
    await stage.call("POST", f"{CORE}/namespaces/kube-system/secrets", secret)
    hook: dict[str, Any] = {"name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["clientConfig"] = {"service": {"name": "policyengine-webhook", "namespace": "kube-system"}}
    await stage.call("POST", CONFIGURATIONS, {"metadata": {"name": "policyengine"}, "webhooks": [hook]})


def _native(crd: Any) -> Any:
    """Kubernetes' own PodGroup, for a server that does not know it: the real one does, by its feature gate."""
    made = json.loads(json.dumps(crd).replace("scheduling.x-k8s.io", NATIVE).replace("v1alpha1", "v1alpha2"))
    version = made["spec"]["versions"][0]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"]["openAPIV3Schema"]["properties"] |= {"spec": anything, "status": anything}
    return made


async def _is_served(stage: Stage, path: str) -> bool:
    for _ in range(50):
        with suppress(ApiError):
            await stage.call("GET", path)
            return True
        await asyncio.sleep(0.1)
    return False


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1m"}}}
    more = {"schedulerName": "default-scheduler", "containers": [container]}
    return {"metadata": {"name": name}, "spec": more | spec}


def heavy(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    item = pod(name, **spec)
    item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return item


def claim(name: str, of: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": resources},
    }


def with_volume(name: str) -> dict[str, Any]:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])


async def cluster(stage: Stage, run: str) -> None:
    """What a run of the scheduler begins with: two nodes, a disk and a device on the first, a pod on the second."""
    for name in (f"n{run}", f"full{run}"):
        await stage.call("POST", f"{CORE}/nodes", node(name, "a"))
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{run}"]}
    disk = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    await stage.call("POST", f"{CORE}/persistentvolumes", {"metadata": {"name": f"disk{run}"}, "spec": disk})
    phase = {"status": {"phase": "Available"}}
    await stage.call("PATCH", f"{CORE}/persistentvolumes/disk{run}/status", phase)
    pool = {"name": f"n{run}", "generation": 1, "resourceSliceCount": 1}
    slice_ = {"driver": GPU, "nodeName": f"n{run}", "pool": pool, "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}
    await stage.call("POST", f"{DEVICES}/resourceslices", {"metadata": {"name": f"gpu{run}"}, "spec": slice_})
    exactly = {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}
    wanted = {"metadata": {"name": f"gpu{run}"}, "spec": {"devices": exactly}}
    await stage.call("POST", f"{DEVICES}/namespaces/default/resourceclaims", wanted)
    for name, of in (("ondisk", "local"), ("made", "made")):
        await stage.call("POST", CLAIMS, claim(f"{name}{run}", of))
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": f"crew{run}"}}
    await stage.call("POST", GROUPS, group | {"spec": {"minMember": 1}})
    own = group | {"apiVersion": f"{NATIVE}/v1alpha2", "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    await stage.call("POST", OWN_GROUPS, own)
    await stage.call("POST", PODS, heavy(f"victim{run}", "4", nodeName=f"full{run}"))


def extended(name: str, **spec: Any) -> dict[str, Any]:
    """A pod that asks for a device as for any resource."""
    item = pod(name, **spec)
    item["spec"]["containers"][0]["resources"]["limits"] = {"deviceclass.resource.kubernetes.io/gpu": "1"}
    return item


async def with_left_over(stage: Stage, name: str) -> None:
    """A pod that fits nowhere, and the claim that an earlier attempt made for it."""
    waits = extended(name, schedulingGates=[{"name": "example.com/wait"}], nodeSelector={"disk": "none"})
    uid = (await stage.call("POST", PODS, waits))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    meta = {"name": name, "annotations": annotations, "ownerReferences": [owner]}
    await stage.call("POST", f"{DEVICES}/namespaces/default/resourceclaims", {"metadata": meta, "spec": {}})
    await stage.call("PATCH", f"{PODS}/{name}", {"spec": {"schedulingGates": None}})


def pods(run: str) -> list[dict[str, Any]]:
    """What comes while the scheduler runs."""
    takes = pod(f"takes{run}", resourceClaims=[{"name": "gpu", "resourceClaimName": f"gpu{run}"}])
    takes["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    crew = pod(f"crew{run}", schedulerName="pod-group-scheduler")
    crew["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": f"crew{run}"}
    own = pod(f"own{run}", schedulerName="pod-group-scheduler", schedulingGroup={"podGroupName": f"crew{run}"})
    on_full = {"nodeSelector": {"kubernetes.io/hostname": f"full{run}"}}
    return [
        pod(f"plain{run}"),
        pod(f"lost{run}"),
        heavy(f"huge{run}", "64"),
        heavy(f"first{run}", "4", priorityClassName="high", **on_full),
        *(with_volume(f"{name}{run}") for name in ("ondisk", "made")),
        takes,
        extended(f"asks{run}"),
        crew,
        own,
    ]


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

    def placed(name: str) -> Goal:
        async def reached() -> bool:
            return "nodeName" in (await of(f"{PODS}/{name}{run}"))["spec"]

        return reached

    async def explained() -> bool:
        return "conditions" in (await of(f"{PODS}/huge{run}")).get("status", {})

    async def events(count: int) -> bool:
        items = (await of(EVENTS))["items"]
        about = [one for one in items if one["regarding"]["name"] == f"again{run}"]
        return any((one.get("series") or {"count": 1})["count"] >= count for one in about)

    async def preempted() -> bool:
        return "deletionTimestamp" in (await of(f"{PODS}/victim{run}"))["metadata"]

    async def disk_taken() -> bool:
        return "claimRef" in (await of(f"{CORE}/persistentvolumes/disk{run}"))["spec"]

    async def node_selected() -> bool:
        annotations = (await of(f"{CLAIMS}/made{run}"))["metadata"].get("annotations", {})
        return "volume.kubernetes.io/selected-node" in annotations

    async def gone() -> bool:
        items = (await of(f"{DEVICES}/namespaces/default/resourceclaims"))["items"]
        return all(one["metadata"]["name"] != f"left{run}" for one in items)

    async def counted() -> bool:
        return bool((await of(f"{GROUPS}/crew{run}")).get("status", {}).get("scheduled"))

    async def conditioned() -> bool:
        return bool((await of(f"{OWN_GROUPS}/crew{run}")).get("status", {}).get("conditions"))

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
        kinds = [one.resource for one in scheduler.runner.reflectors]
        failing = [one for one in scheduler.runner.reflectors if one.failing_since is not None]
        watches = {(kind.group, kind.plural, "watch") for kind in kinds}
        return not failing and watches <= wire.used

    try:
        yield {
            "a pod is bound": placed("plain"),
            "a pod whose binding got no answer is bound": placed("lost"),
            "a pod says why it waits": explained,
            "an event is there": lambda: events(1),
            "an event that comes again is counted": lambda: events(2),
            "a victim goes": preempted,
            "a volume is taken": disk_taken,
            "a claim gets its node": node_selected,
            "a pod gets its device": placed("takes"),
            "a pod gets a device for an extended resource": placed("asks"),
            "a claim that an attempt left goes": gone,
            "a group's status is counted": counted,
            "a group of Kubernetes' own has its condition": conditioned,
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


def policy(name: str) -> dict[str, Any]:
    labels = {"policyengine.io/policy": "true"}
    return {"metadata": {"name": name, "labels": labels}, "data": {"p.policy": f'policy "p" {{ scheduler "{name}" }}'}}


def scheduling_policy(name: str) -> dict[str, Any]:
    spec = {"policies": {"p.policy": f'policy "q" {{ scheduler "{name}-2" }}'}}
    about = {"apiVersion": "policyengine.io/v1alpha1", "kind": "SchedulingPolicy", "metadata": {"name": name}}
    return about | {"spec": spec}


async def _come(stage: Stage, scheduler: Scheduler, run: str) -> None:
    await scheduler.reloader.settled.wait()
    await stage.call("POST", MAPS, policy(f"later{run}"))
    await stage.call("POST", POLICIES, scheduling_policy(f"later{run}"))
    again = RecordEvent("", "default", f"again{run}", "", "Normal", "Tried", "Trying", "once more", "default-scheduler")
    while True:
        scheduler.runner.record(again)
        await asyncio.sleep(0.5)


class Measures:
    """A source that measures every node."""

    async def measure(self, now: float, nodes: Mapping[str, Any]) -> Measured:
        return Measured({name: [(now, 1.0)] for name in nodes})

    async def close(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def annotating(stage: Stage, wire: Wire, run: str) -> AsyncIterator[Mapping[str, Goal]]:
    """`policyengine annotate`, by Prometheus and by metrics.k8s.io, which this server does not serve."""
    name, client = f"annotated{run}", Client(wire)
    await stage.call("POST", f"{CORE}/nodes", node(name, "a"))

    async def annotated() -> bool:
        with suppress(ApiError):
            await Annotator(Measures(), client, stage.clock, AnnotatorSettings(), 60.0).round()
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
    store = ConfigMapStore(Client(wire), "kube-system", "policyengine-rewards")
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
