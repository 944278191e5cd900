"""The scheduler's own ServiceAccount under `deploy/base/rbac.yaml`: all it needs, and each verb is needed."""

import asyncio
import os
from random import Random
from typing import Any

import pytest

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client, Response, Transport
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.access.authentication import service_account
from policyengine.simulator.api_server.requests import ADMIN
from policyengine.simulator.real_server import ASSETS, connect, real_server
from policyengine.simulator.sandbox import create, node
from tests.record.servers import As
from tests.record.session import POOR, Session
from tests.simulator import manifests as m

ACCOUNTS = ("policyengine", "policyengine-annotator", "policyengine-rewards")
TOKENS = {"admin-token": ADMIN, **{f"{name}-token": service_account("kube-system", name) for name in ACCOUNTS}}
BEARERS = {name: f"Bearer {name}-token" for name in ACCOUNTS}


async def guarded() -> ApiServer:
    """A server with tokens, RBAC and the manifests applied."""
    api = ApiServer(SystemClock(), tokens=TOKENS)
    for obj in m.manifests():
        await m.apply(As(api, "Bearer admin-token"), obj)
    return api


@pytest.mark.parametrize("grant", m.grants(), ids=lambda grant: grant.id)
async def test_each_verb_is_granted_and_without_it_the_call_is_refused(grant: m.Grant) -> None:
    api = await guarded()
    ours = As(api, BEARERS[grant.account])
    status, message = await m.call(ours, grant)
    assert status != 403, message
    await m.apply(As(api, "Bearer admin-token"), m.without(grant))
    assert await m.call(ours, grant) == (403, grant.refusal)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces/default/pods"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("PATCH", "/api/v1/namespaces/default/pods/p"),
        ("POST", "/api/v1/namespaces/default/pods/p/eviction"),
        ("PATCH", "/api/v1/nodes/n"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/policyengine"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
    ],
)
async def test_nothing_else_is_granted(method: str, path: str) -> None:
    ours = As(await guarded(), BEARERS["policyengine"])
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    response = await ours.request(method, path, body=body, headers=headers)
    assert response.status == 403


def test_no_rule_is_a_wildcard() -> None:
    assert all("*" not in (grant.group, grant.resource, grant.verb) for grant in m.grants())


async def test_a_scheduling_round_as_that_account() -> None:
    api = await guarded()
    admin, ours = As(api, "Bearer admin-token"), As(api, BEARERS["policyengine"])

    async def said(who: Transport, method: str, path: str, body: str = "", content: str = "application/json") -> int:
        data = body.encode() or None
        response = await who.request(method, path, body=data, headers={"Content-Type": content} if data else {})
        await response.close()
        return response.status

    pod = '{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
    policy = '{"metadata":{"name":"policy"},"data":{"a.policy":"policy a {}"}}'
    pods, maps = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/kube-system/configmaps"
    merge = "application/merge-patch+json"
    assert await said(admin, "POST", pods, pod) == 201
    assert await said(admin, "POST", maps, policy) == 201
    assert await said(ours, "GET", "/api/v1/pods") == 200
    condition = '{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}'
    strategic = "application/strategic-merge-patch+json"
    assert await said(ours, "PATCH", f"{pods}/p/status", condition, strategic) == 200
    binding = '{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}'
    assert await said(ours, "POST", f"{pods}/p/binding", binding) == 201
    annotation = '{"metadata":{"annotations":{"policyengine.io/status":"{}"}}}'
    assert await said(ours, "PATCH", f"{maps}/policy", annotation, merge) == 200
    event = (
        '{"metadata":{"name":"p.1"},"eventTime":"2026-01-01T00:00:00.000000Z","action":"Binding","reason":"Scheduled",'
        '"type":"Normal","reportingController":"policyengine","reportingInstance":"h",'
        '"regarding":{"kind":"Pod","namespace":"default","name":"p"}}'
    )
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert await said(ours, "POST", events, event) == 201
    lease = '{"metadata":{"name":"policyengine"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15}}'
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    assert await said(ours, "POST", leases, lease) == 201
    assert await said(ours, "GET", f"{leases}/policyengine") == 200
    assert await said(ours, "DELETE", f"{pods}/p") == 200


class Watched(As):
    """A way into the server that remembers what was refused."""

    def __init__(self, api: ApiServer, authorization: str) -> None:
        super().__init__(api, authorization)
        self.refused: list[str] = []
        self.was_refused = asyncio.Event()

    async def request(self, method: str, path: str, **more: Any) -> Response:
        """One request."""
        response = await super().request(method, path, **more)
        if response.status == 403:
            self.refused.append(f"{method} {path}")
            self.was_refused.set()
        return response


@pytest.mark.parametrize("missing", [None, ("pods/binding", "create")])
async def test_the_scheduler_itself_runs_as_that_account(missing: tuple[str, str] | None) -> None:
    api = await guarded()
    admin, ours = As(api, "Bearer admin-token"), Watched(api, BEARERS["policyengine"])
    if missing is not None:
        await m.apply(admin, m.without(next(g for g in m.grants() if (g.resource, g.verb) == missing)))
    await create(admin, "/api/v1/nodes", node("n1", "a"))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    scheduler = Scheduler(Client(ours), SystemClock(), Random(1), [default_profile()], host="tests")
    stop = asyncio.Event()
    work = asyncio.create_task(scheduler.run(stop))
    watch = await admin.request("GET", "/api/v1/pods", query={"watch": "1", "fieldSelector": "spec.nodeName=n1"})
    await create(admin, "/api/v1/namespaces/default/pods", pod)
    async with asyncio.timeout(20):
        if missing is None:
            await anext(watch.lines())
        else:
            await ours.was_refused.wait()
    stop.set()
    await work
    await watch.close()
    assert set(ours.refused) == (set() if missing is None else {"POST /api/v1/namespaces/default/pods/p/binding"})


async def test_the_token_a_real_account_asks_for_has_the_same_rights() -> None:
    api = await guarded()
    session = Session(lambda header: As(api, "Bearer admin-token" if header is None else header))
    await session.begin()
    listed = await session.quietly("GET", "/api/v1/pods", user=POOR)
    assert listed["kind"] == "PodList"
    # The transport that needs no socket says who it is by itself.
    nobody = MemoryTransport(api)
    assert (await nobody.request("GET", "/api/v1/pods")).status == 403


@pytest.mark.skipif(not os.environ.get(ASSETS), reason=f"${ASSETS} names no folder with etcd and kube-apiserver")
async def test_the_same_on_the_real_server() -> None:
    async with real_server() as (url, token):
        admin = connect(url, token)
        for obj in m.manifests():
            await m.apply(admin, obj)
        session = Session(lambda header: connect(url, token if header is None else header.removeprefix("Bearer ")))
        await session.begin()
        home = "/api/v1/namespaces/kube-system/serviceaccounts"
        tokens = {
            name: (await session.quietly("POST", f"{home}/{name}/token", {"spec": {}}))["status"]["token"]
            for name in BEARERS
        }
        clients = {name: connect(url, bearer) for name, bearer in tokens.items()}
        for grant in m.grants():
            ours = clients[grant.account]
            status, message = await m.eventually(ours, grant, refused=False)
            assert status != 403, (grant, message)
            await m.apply(admin, m.without(grant))
            status, message = await m.eventually(ours, grant, refused=True)
            assert (status, message) == (403, grant.refusal)
            whole = next(o for o in m.manifests() if m._is_role_of(o, grant))
            await m.apply(admin, whole)
        for transport in (*clients.values(), admin):
            await transport.close()
        await session.end()
