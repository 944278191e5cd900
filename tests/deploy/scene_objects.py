"""What scenes put on a server: what all runs share, what a run begins with, and what comes while it goes on."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import yaml

from policyengine.kube.http.client import ApiError
from policyengine.simulator.sandbox import node
from tests.deploy.manifests import DEPLOY
from tests.deploy.stage import Stage

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
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINED = [
    yaml.safe_load((DEPLOY / "base" / f"{name}.yaml").read_text()) for name in ("podgroups", "schedulingpolicies")
]
GPU = "gpu.example.com"
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


async def begin(stage: Stage) -> None:
    """What all runs share: two kinds of PodGroup, classes, a node, and what the webhook trusts."""
    await stage.call("POST", CRDS, _native(DEFINED[0]))
    assert await _is_served(stage, OWN_GROUPS)
    await define(stage)
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


async def define(stage: Stage) -> None:
    """PodGroups and SchedulingPolicies are served from now on."""
    for one in DEFINED:
        await stage.call("POST", CRDS, one)
    assert all([await _is_served(stage, path) for path in (GROUPS, POLICIES)])


async def undefine(stage: Stage) -> None:
    """They are served no more."""
    for one in DEFINED:
        await stage.call("DELETE", f"{CRDS}/{one['metadata']['name']}")
    for path in (GROUPS, POLICIES):
        for _ in range(100):
            if not await _is_served(stage, path, tries=1):
                break
            await asyncio.sleep(0.1)


def _native(crd: Any) -> Any:
    """Kubernetes' own PodGroup, for a server that does not know it: the real one does, by its feature gate."""
    made = json.loads(json.dumps(crd).replace("scheduling.x-k8s.io", NATIVE).replace("v1alpha1", "v1alpha2"))
    version = made["spec"]["versions"][0]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"]["openAPIV3Schema"]["properties"] |= {"spec": anything, "status": anything}
    return made


async def _is_served(stage: Stage, path: str, tries: int = 50) -> bool:
    for _ in range(tries):
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


def policy(name: str) -> dict[str, Any]:
    labels = {"policyengine.io/policy": "true"}
    return {"metadata": {"name": name, "labels": labels}, "data": {"p.policy": f'policy "p" {{ scheduler "{name}" }}'}}


def scheduling_policy(name: str) -> dict[str, Any]:
    spec = {"policies": {"p.policy": f'policy "q" {{ scheduler "{name}-2" }}'}}
    about = {"apiVersion": "policyengine.io/v1alpha1", "kind": "SchedulingPolicy", "metadata": {"name": name}}
    return about | {"spec": spec}
