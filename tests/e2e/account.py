"""Who the scheduler is in these tests: the ServiceAccount of `deploy/base/rbac.yaml`, with its rights and no others."""

import asyncio
import json
from typing import Any

from policyengine.kube.http.client import Transport
from policyengine.simulator.api_server.access.authentication import service_account
from tests.simulator import manifests as m

ADMIN = "admin.kubeconfig"
BY_TOKEN = "scheduler.kubeconfig"
BY_CERTIFICATE = "scheduler-certificate.kubeconfig"
REFUSED = "refused.txt"
SCHEDULER = service_account("kube-system", "policyengine")
TOKEN = "/api/v1/namespaces/kube-system/serviceaccounts/policyengine/token"
REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def post(transport: Transport, path: str, body: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    response = await transport.request("POST", path, body=json.dumps(body).encode(), headers=headers, timeout=30.0)
    raw = await response.read()
    await response.close()
    assert response.status == 201, raw
    return json.loads(raw)


async def set_up(admin: Transport) -> str:
    """Apply the manifests and wait until every right holds; a token of the account."""
    for obj in m.manifests():
        await m.apply(admin, obj)
    for grant in m.grants():
        if grant.account == "policyengine":
            await _holds(admin, grant)
    token: str = (await post(admin, TOKEN, {"spec": {}}))["status"]["token"]
    return token


async def _holds(admin: Transport, grant: m.Grant) -> None:
    """A real server hears of roles a moment after they are written."""
    resource, _, subresource = grant.resource.partition("/")
    asked = {
        "namespace": grant.namespace,
        "verb": grant.verb,
        "group": grant.group,
        "resource": resource,
        "subresource": subresource,
        "name": grant.name,
    }
    spec = {"user": SCHEDULER.name, "groups": list(SCHEDULER.groups), "resourceAttributes": asked}
    for _ in range(200):
        if (await post(admin, REVIEW, {"spec": spec}))["status"]["allowed"]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{grant} never held")
