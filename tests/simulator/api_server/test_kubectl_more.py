"""The rest of the tour: edit, replace, selectors, CRDs, drains that wait, and access as others see it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from policyengine.simulator.api_server import ApiServer
from policyengine.simulator.api_server.access.authentication import service_account
from tests.deploy.manifests import DEPLOY, documents
from tests.simulator.api_server.kubectl import Kubectl, cluster, needs_kubectl
from tests.simulator.api_server.test_kubectl_tour import POD

pytestmark = needs_kubectl
TOKENS = {"scheduler": service_account("kube-system", "policyengine")}
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [size]
              properties: {size: {type: integer, minimum: 1}, colour: {type: string, enum: [red, green]}}
            status: {type: object, properties: {ready: {type: boolean}}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: %s}\n"


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[tuple[ApiServer, Kubectl]]:
    async with cluster(tmp_path, TOKENS) as found:
        yield found


async def test_edit_replace_and_selectors(world: tuple[ApiServer, Kubectl], tmp_path: Path) -> None:
    _, kubectl = world
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


async def test_a_custom_kind_is_validated_printed_explained_and_has_a_status(world: tuple[ApiServer, Kubectl]) -> None:
    _, kubectl = world
    await kubectl("apply", "-f", "-", stdin=CRD)
    await kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=30s")
    refused = await kubectl("apply", "-f", "-", stdin=WIDGET % "0", fails=True)
    assert "should be greater than or equal to 1" in refused
    await kubectl("apply", "-f", "-", stdin=WIDGET % "3")
    shown = await kubectl("get", "wd")
    assert [line.split()[:2] for line in shown.splitlines()] == [["NAME", "SIZE"], ["w", "3"]]
    status = ("patch", "wd", "w", "--subresource=status", "--type=merge", "-p", '{"status":{"ready":true}}')
    await kubectl(*status)
    assert await kubectl("get", "wd", "w", "-o", "jsonpath={.spec.size} {.status.ready}") == "3 true"
    assert "colour" in await kubectl("explain", "widget.spec")


async def test_the_manifests_apply_and_say_what_the_account_may(world: tuple[ApiServer, Kubectl]) -> None:
    _, kubectl = world
    files = [DEPLOY / "base" / name for name in ("namespace.yaml", "rbac.yaml")]
    apply, count = ("apply", *(f"-f={path}" for path in files)), sum(len(documents(path)) for path in files)
    assert (await kubectl(*apply)).count(" created") == count
    assert (await kubectl(*apply)).count(" unchanged") == count
    ours = f"--as={TOKENS['scheduler'].name}"
    assert await kubectl("auth", "can-i", "create", "pods", "--subresource=binding", ours) == "yes\n"
    assert "no" in await kubectl("auth", "can-i", "create", "pods", ours, fails=True)
    listed = await kubectl("auth", "can-i", "--list", ours)
    assert "pods/binding" in listed and "secrets" not in listed
    assert "cannot list resource" in await kubectl("get", "secrets", "--token=scheduler", fails=True)
    assert "system:serviceaccount:kube-system:policyengine" in await kubectl("auth", "whoami", "--token=scheduler")
    token = await kubectl("create", "token", "policyengine", "-n", "kube-system")
    await kubectl("apply", "-f", "-", stdin=POD)
    assert await kubectl("get", "pods", f"--token={token.strip()}", "-o", "name") == "pod/web\n"


async def test_what_the_server_says_of_itself(world: tuple[ApiServer, Kubectl]) -> None:
    _, kubectl = world
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


async def test_a_list_is_checked_and_applied_item_by_item(world: tuple[ApiServer, Kubectl]) -> None:
    _, kubectl = world
    refused = await kubectl("apply", "-f", "-", stdin=LIST % ", dta: {}", fails=True)
    assert 'strict decoding error: unknown field "dta"' in refused
    assert "one unchanged\nconfigmap/two created" in await kubectl("apply", "-f", "-", stdin=LIST % "")
    assert (await kubectl("apply", "-f", "-", stdin=LIST % "")).count(" unchanged") == 2
    assert (await kubectl("diff", "-f", "-", stdin=LIST % "")) == ""
    assert "+  k: w" in await kubectl("diff", "-f", "-", stdin=(LIST % "").replace("k: v", "k: w"), fails=True)


async def test_what_is_not_served_is_said_plainly(world: tuple[ApiServer, Kubectl]) -> None:
    _, kubectl = world
    assert "Metrics API not available" in await kubectl("top", "nodes", fails=True)
    assert "*.*" in await kubectl("auth", "can-i", "--list")
