"""A tour with the real kubectl over HTTP: what a person does with a cluster, command by command."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from policyengine.simulator.api_server.access.authentication import service_account
from tests.deploy.manifests import DEPLOY, documents
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


async def test_server_side_apply_names_its_conflicts(kubectl: Kubectl) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {k: %s}\n"
    ours = ("apply", "--server-side", "--field-manager=ours", "-f", "-")
    theirs = ("apply", "--server-side", "--field-manager=theirs", "-f", "-")
    assert "serverside-applied" in await kubectl(*ours, stdin=config % "one")
    assert 'conflict with "ours": .data.k' in await kubectl(*theirs, stdin=config % "two", fails=True)
    assert "serverside-applied" in await kubectl(*theirs, "--force-conflicts", stdin=config % "two")
    assert await kubectl("get", "cm", "m", "-o", "jsonpath={.data.k}") == "two"


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


async def test_edit_replace_and_selectors(kubectl: Kubectl, tmp_path: Path) -> None:
    await kubectl("create", "configmap", "m", "--from-literal=k=one")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/k: one/k: two/' \"$1\"\n")
    editor.chmod(0o755)
    kubectl.environment["KUBE_EDITOR"] = str(editor)
    assert "configmap/m edited" in await kubectl("edit", "configmap", "m")
    assert await kubectl("get", "cm", "m", "-o", "jsonpath={.data.k}") == "two"
    changed = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {a: b}}\ndata: {k: three}\n"
    assert "replaced" in await kubectl("replace", "-f", "-", stdin=changed)
    assert await kubectl("get", "cm", "-l", "a=b", "-o", "name") == "configmap/m\n"
    assert await kubectl("get", "cm", "--field-selector", "metadata.name=m", "-o", "name") == "configmap/m\n"
    assert "deleted" in await kubectl("delete", "cm", "-l", "a=b")


TOKENS = {"scheduler": service_account("kube-system", "policyengine")}


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with cluster(tmp_path, TOKENS) as (_, found):
        yield found


async def test_the_manifests_apply_and_say_what_the_account_may(guarded: Kubectl) -> None:
    files = [DEPLOY / "base" / name for name in ("namespace.yaml", "rbac.yaml")]
    apply, count = ("apply", *(f"-f={path}" for path in files)), sum(len(documents(path)) for path in files)
    assert (await guarded(*apply)).count(" created") == count
    assert (await guarded(*apply)).count(" unchanged") == count
    ours = f"--as={TOKENS['scheduler'].name}"
    assert await guarded("auth", "can-i", "create", "pods", "--subresource=binding", ours) == "yes\n"
    assert "no" in await guarded("auth", "can-i", "create", "pods", ours, fails=True)
    listed = await guarded("auth", "can-i", "--list", ours)
    assert "pods/binding" in listed and "secrets" not in listed
    assert "cannot list resource" in await guarded("get", "secrets", "--token=scheduler", fails=True)
    assert "system:serviceaccount:kube-system:policyengine" in await guarded("auth", "whoami", "--token=scheduler")
    token = await guarded("create", "token", "policyengine", "-n", "kube-system")
    await guarded("apply", "-f", "-", stdin=POD)
    assert await guarded("get", "pods", f"--token={token.strip()}", "-o", "name") == "pod/web\n"


async def test_what_the_server_says_of_itself(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.2" in await kubectl("version")
    assert "scheduling.k8s.io/v1" in (await kubectl("api-versions")).splitlines()
    assert await kubectl("get", "--raw", "/readyz") == "ok"
    fields = await kubectl("explain", "lease.spec")
    assert "holderIdentity\t<string>" in fields and "leaseDurationSeconds\t<integer>" in fields
    recursive = await kubectl("explain", "pod.spec.affinity", "--recursive")
    assert "preferredDuringSchedulingIgnoredDuringExecution\t<[]PreferredSchedulingTerm>" in recursive
    explained = await kubectl("explain", "pod.spec.topologySpreadConstraints")
    assert "whenUnsatisfiable" in explained and "-required-" in explained
    assert "The node the pod is bound to." in await kubectl("explain", "pod.spec.nodeName")
    listed = await kubectl("api-resources", "--no-headers")
    assert any(line.split()[:3] == ["pods", "po", "v1"] for line in listed.splitlines())


LIST = """apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k: v}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: two}%s}
"""


async def test_a_list_is_checked_and_applied_item_by_item(kubectl: Kubectl) -> None:
    refused = await kubectl("apply", "-f", "-", stdin=LIST % ", dta: {}", fails=True)
    assert 'strict decoding error: unknown field "dta"' in refused
    assert "one unchanged\nconfigmap/two created" in await kubectl("apply", "-f", "-", stdin=LIST % "")
    assert (await kubectl("apply", "-f", "-", stdin=LIST % "")).count(" unchanged") == 2
    assert (await kubectl("diff", "-f", "-", stdin=LIST % "")) == ""
    assert "+  k: w" in await kubectl("diff", "-f", "-", stdin=(LIST % "").replace("k: v", "k: w"), fails=True)


async def test_what_is_not_served_is_said_plainly(kubectl: Kubectl) -> None:
    assert "Metrics API not available" in await kubectl("top", "nodes", fails=True)
    assert "*.*" in await kubectl("auth", "can-i", "--list")
