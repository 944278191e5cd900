"""A tour with the real kubectl over HTTP: what a person does with a cluster, command by command."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.simulator.api_server.kubectl import PATIENCE, Kubectl, cluster, needs_kubectl

pytestmark = needs_kubectl

NODE = """apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: registry.example/web:1}]}
"""
BINDING = """{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web"},
"target":{"apiVersion":"v1","kind":"Node","name":"n1"}}"""


@pytest_asyncio.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with cluster(tmp_path) as (_, found):
        yield found


async def bound(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE)
    await kubectl("apply", "-f", "-", stdin=POD)
    await kubectl("create", "--raw", "/api/v1/namespaces/default/pods/web/binding", "-f", "-", stdin=BINDING)


async def test_a_pod_from_apply_to_delete(kubectl: Kubectl) -> None:
    await bound(kubectl)
    assert "condition met" in await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    wide = await kubectl("get", "pods", "-o", "wide")
    assert wide.splitlines()[0].split()[:6] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"]
    assert wide.splitlines()[1].split()[:4] == ["web", "1/1", "Running", "0"]
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=POD)
    changed = POD.replace("web:1", "web:2")
    assert "configured" in await kubectl("apply", "-f", "-", stdin=changed)
    assert "registry.example/web:2" in await kubectl("diff", "-f", "-", stdin=POD, fails=True)
    assert "deleted" in await kubectl("delete", "pod", "web", "--timeout=30s")
    assert "NotFound" in await kubectl("get", "pod", "web", fails=True)


async def test_labels_annotations_and_every_patch_type(kubectl: Kubectl) -> None:
    await bound(kubectl)
    await kubectl("label", "pod", "web", "tier=front")
    await kubectl("annotate", "pod", "web", "note=kept")
    await kubectl("patch", "pod", "web", "-p", '{"metadata":{"labels":{"a":"1"}}}')
    await kubectl("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"b":"2"}}}')
    await kubectl("patch", "pod", "web", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/a"}]')
    shown = await kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.labels} {.metadata.annotations.note}")
    assert shown == '{"app":"web","b":"2","tier":"front"} kept'


async def test_a_node_is_tainted_cordoned_and_drained_within_a_budget(kubectl: Kubectl) -> None:
    await bound(kubectl)
    await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    await kubectl("taint", "node", "n1", "k=v:NoSchedule")
    assert "k=v:NoSchedule" in await kubectl("describe", "node", "n1")
    await kubectl("create", "pdb", "keep", "--selector=app=web", "--min-available=1")
    await kubectl("wait", "--for=jsonpath={.status.currentHealthy}=1", "pdb/keep", "--timeout=30s")
    drain = ("drain", "n1", "--force", "--timeout=3s")
    assert "would violate the pod's disruption budget" in await kubectl(*drain, fails=True)
    await kubectl("delete", "pdb", "keep")
    assert "node/n1 drained" in await kubectl("drain", "n1", "--force", "--timeout=30s")
    assert "SchedulingDisabled" in await kubectl("get", "nodes")
    assert "uncordoned" in await kubectl("uncordon", "n1")


async def test_describe_shows_a_pods_events(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=POD)
    uid = await kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.uid}")
    event = f"""apiVersion: events.k8s.io/v1
kind: Event
metadata: {{name: web.1, namespace: default}}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: policy-scheduler
reportingInstance: host
action: Scheduling
reason: FailedScheduling
type: Warning
note: "0/1 nodes are available: 1 Insufficient cpu."
regarding: {{kind: Pod, namespace: default, name: web, uid: {uid}, apiVersion: v1}}
"""
    await kubectl("create", "-f", "-", stdin=event)
    described = await kubectl("describe", "pod", "web")
    assert "FailedScheduling" in described
    assert "policy-scheduler  0/1 nodes are available: 1 Insufficient cpu." in described
    assert "FailedScheduling" in await kubectl("get", "events")


async def test_a_watch_prints_each_change(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE)
    watching = await kubectl.start("get", "nodes", "-w", "--no-headers")
    assert watching.stdout is not None
    try:
        first = await asyncio.wait_for(watching.stdout.readline(), PATIENCE)
        await kubectl("cordon", "n1")
        second = await asyncio.wait_for(watching.stdout.readline(), PATIENCE)
    finally:
        watching.terminate()
        await watching.wait()
    assert (first.split()[:2], second.split()[:2]) == ([b"n1", b"Ready"], [b"n1", b"Ready,SchedulingDisabled"])


async def test_typed_commands_which_speak_protobuf(kubectl: Kubectl) -> None:
    assert "created" in await kubectl("create", "configmap", "m", "--from-literal=a=b")
    assert await kubectl("get", "cm", "m", "-o", "jsonpath={.data.a}") == "b"
    assert "created" in await kubectl("create", "deployment", "d", "--image=registry.example/x:1", "--replicas=2")
    assert "scaled" in await kubectl("scale", "deployment", "d", "--replicas=5")
    assert await kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}") == "5"
    assert "created" in await kubectl("create", "namespace", "team")
    assert "deleted" in await kubectl("delete", "namespace", "team", "--timeout=30s")
