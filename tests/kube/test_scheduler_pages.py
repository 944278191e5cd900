"""The running scheduler's pages: found by its Lease, asked through a pod proxy, believed from the leader alone."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from policyengine.clock import SystemClock, micro_time
from policyengine.kube.config.access import AccessDenied, Unreachable
from policyengine.kube.config.configuration import read
from policyengine.kube.http.client import Client, ConnectionFailed, Response
from policyengine.kube.leader import LABEL, LABELLED, PAGES, LeaderElector
from policyengine.kube.scheduler_pages import (
    OFF,
    TOKEN_HEADER,
    NoScheduler,
    RunningScheduler,
    UnknownPod,
    announced,
    ask,
    find,
)
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.server.callers import Reviewer
from policyengine.server.endpoints import Endpoints, served
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.kube.scripted_server import Answer, Opened, ScriptedServer, failure
from tests.record.servers import As

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
AGENT = "system:serviceaccount:kube-system:policyengine-reader"
CONFIGURATION = """apiVersion: policyengine.io/v1
kind: SchedulerConfiguration
endpoints: {address: "127.0.0.1:0", authentication: TokenReview}
"""


class Proxied:
    """A way to the API server whose pod proxy does what kube-apiserver's does: it takes `Authorization` away, believes
    any certificate, and passes other headers on."""

    def __init__(self, inner: As, url: str) -> None:
        self.inner = inner
        self.url = url
        self.sent: list[Mapping[str, str]] = []
        """Headers that came to the pod."""

    async def request(self, method: str, path: str, **how: Any) -> Response:
        where, proxied, page = path.partition("/proxy/")
        if not proxied:
            return await self.inner.request(method, path, **how)
        assert where == "/api/v1/namespaces/kube-system/pods/https:policyengine-7d:10259"
        self.sent.append(how["headers"])
        return await self._passed_on(f"{self.url}/{page}", how["headers"])

    async def _passed_on(self, url: str, headers: Mapping[str, str]) -> Any:
        context = ssl._create_unverified_context()
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=context) as answer:
            return Opened(Answer(answer.status, await answer.read(), dict(answer.headers)))

    async def close(self) -> None: ...


class Site:
    def __init__(self, api: ApiServer, elector: LeaderElector, way: Proxied) -> None:
        self.admin = MemoryTransport(api, user=ADMIN)
        self.elector = elector
        self.way = way
        self.client = Client(way)

    async def found(self) -> RunningScheduler:
        (one,) = await find(self.client, SystemClock().now(), "kube-system")
        return one


@asynccontextmanager
async def site(rights: bool = True) -> AsyncIterator[Site]:
    """A scheduler that leads, whose pages ask for tokens, and a cluster whose proxy reaches them."""
    clock = SystemClock()
    api = ApiServer(clock, tokens={"jane": ADMIN})
    admin = MemoryTransport(api, user=ADMIN)
    account = {"metadata": {"name": "policyengine-reader", "namespace": "kube-system"}}
    await create(admin, "/api/v1/namespaces/kube-system/serviceaccounts", account)
    if rights:
        pages = {"nonResourceURLs": ["/debug/queue", "/debug/pods/*"], "verbs": ["get"]}
        await create(admin, f"{RBAC}/clusterroles", {"metadata": {"name": "pages"}, "rules": [pages]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pages"}
        who = {"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": "pages"}, "roleRef": role, "subjects": [who]}
        await create(admin, f"{RBAC}/clusterrolebindings", binding)
    client = Client(admin)
    elector = LeaderElector(client, clock, random.Random(1), "here_1")
    scheduler = Scheduler(client, clock, random.Random(1), [default_profile()], elector=elector)
    configuration = read(CONFIGURATION, "x")
    pages_of = Endpoints(scheduler, SchedulerMetrics(), configuration.data, client, clock, Reviewer(client))
    stop = asyncio.Event()
    async with served(pages_of, configuration) as url:
        elector.pages = "kube-system/https:policyengine-7d:10259"
        running = asyncio.ensure_future(scheduler.run(stop))
        await elector.elected.wait()
        try:
            yield Site(api, elector, Proxied(As(api, "Bearer jane"), url))
        finally:
            stop.set()
            await running


async def test_a_page_is_asked_by_a_token_that_is_worth_nothing_to_the_api_server() -> None:
    async with site() as at:
        page = await ask(at.client, await at.found(), "/debug/queue")
        assert page["servedBy"] == {"identity": "here_1", "leads": True}
        assert page["count"] == 0
        (headers,) = at.way.sent
        token = headers[TOKEN_HEADER].removeprefix("Bearer ")
        assert "jane" not in str(headers)
        for spec, known in (({"token": token}, False), ({"token": token, "audiences": ["policyengine"]}, True)):
            review = await create(at.admin, "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": spec})
            assert review["status"].get("authenticated", False) is known


async def test_only_what_the_account_may_read_is_shown_and_only_to_a_token_of_the_audience() -> None:
    async with site() as at:
        scheduler = await at.found()
        with pytest.raises(AccessDenied, match=rf"refuses its page: `{AGENT}` may not get `/debug/cache`; give"):
            await ask(at.client, scheduler, "/debug/cache")
        with pytest.raises(UnknownPod, match="knows no pod `default/none` waits or runs"):
            await ask(at.client, scheduler, "/debug/pods/default/none")
        with pytest.raises(AssertionError, match="401"):  # a person's own token, in the header of the pages
            refused = await at.way._passed_on(f"{at.way.url}/debug/queue", {TOKEN_HEADER: "Bearer jane"})
            raise AssertionError(refused.status)


async def test_without_its_right_the_account_is_named() -> None:
    async with site(rights=False) as at:
        with pytest.raises(AccessDenied, match="give that account the ClusterRole of its pages"):
            await ask(at.client, await at.found(), "/debug/queue")


async def test_a_standby_or_a_stranger_is_not_believed() -> None:
    async with site() as at:
        scheduler = await at.found()
        with pytest.raises(Unreachable, match="`here_1` answers and does not lead; ask again"):
            await ask(at.client, replace(scheduler, holder="there_2"), "/debug/queue")
        at.elector._leads = False
        with pytest.raises(Unreachable, match="does not lead"):
            await ask(at.client, scheduler, "/debug/queue")
        at.elector._leads = True


def lease(name: str, holder: str = "a_1", age: float = 0.0, pages: str = OFF) -> dict[str, Any]:
    about = {"name": name, "namespace": "kube-system", "labels": {LABEL: LABELLED}, "annotations": {PAGES: pages}}
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": micro_time(SystemClock().now() - age),
    }
    return {"metadata": about, "spec": spec}


async def seen(*leases: dict[str, Any]) -> list[RunningScheduler]:
    admin = MemoryTransport(ApiServer(SystemClock()), user=ADMIN)
    for one in leases:
        await create(admin, LEASES, one)
    return await find(Client(admin), SystemClock().now(), "kube-system")


async def test_who_holds_a_lease_runs_and_clocks_may_differ_by_a_minute() -> None:
    stranger = {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "b"}}
    found = await seen(lease("b", age=60.0), lease("a", pages="x"), lease("gone", holder=""), stranger)
    assert [(one.lease, one.pages) for one in found] == [("a", "x"), ("b", OFF)]


async def test_a_lease_that_a_tenant_wrote_in_a_namespace_of_his_own_is_not_looked_at() -> None:
    admin = MemoryTransport(ApiServer(SystemClock()), user=ADMIN)
    await create(admin, "/api/v1/namespaces", {"metadata": {"name": "tenant"}})
    forged = lease("a", pages="tenant/https:evil:443")
    forged["metadata"]["namespace"] = "tenant"
    await create(admin, LEASES.replace("kube-system", "tenant"), forged)
    with pytest.raises(NoScheduler):
        await find(Client(admin), SystemClock().now(), "kube-system")


@pytest.mark.parametrize(
    ("leases", "told"),
    [
        ([], "no scheduler runs: no Lease in namespace `kube-system` names one"),
        ([lease("gone", holder="")], "no scheduler runs: no Lease"),
        ([lease("dead", age=100.0)], r"no scheduler runs: the lease of `a_1` ran out \d+ s ago; is its pod up\?"),
    ],
)
async def test_where_none_runs_that_is_said(leases: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(Unreachable, match=told) as caught:
        await seen(*leases)
    assert isinstance(caught.value, NoScheduler) is (not leases or not leases[0]["spec"]["holderIdentity"])


def saying(answer: Answer | ConnectionFailed) -> Client:
    """To a server that gives a token, and then this answer."""
    return Client(ScriptedServer(Answer(201, {"status": {"token": "t"}}), answer))


IN_POD = RunningScheduler("kube-system", "policyengine", "a_1", "kube-system/https:policyengine-7d:10259")


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (failure(403, "Forbidden", "no pods/proxy"), AccessDenied, "cannot be reached by you: no pods/proxy"),
        (failure(404, "NotFound", 'pods "x" not found'), Unreachable, 'cannot be reached: pods "x" not found'),
        (failure(503, "ServiceUnavailable", "dial tcp: refused"), Unreachable, "cannot be reached: dial tcp"),
        (Answer(401, b"show a certificate\n"), AccessDenied, "does not know us.*authentication: TokenReview"),
        (Answer(404, b"404: Not Found"), AccessDenied, "has no such page: it is older, or `endpoints.debug` is off"),
        (Answer(404, b"no pod `a/b` waits or runs\n"), UnknownPod, "knows no pod `a/b` waits or runs"),
        (Answer(502, b"bad"), Unreachable, r"does not answer as policyengine's pages do \(status 502\): bad"),
        (Answer(200, b"<html>"), Unreachable, "the answer cannot be read"),
        (Answer(200, []), Unreachable, "the answer cannot be read"),
        (Answer(200, {"queue": 1}), Unreachable, "does not answer as policyengine's pages do"),
        (ConnectionFailed("refused", sent=False), Unreachable, "does not answer: refused"),
    ],
)
async def test_whatever_goes_wrong_has_one_sentence(answer: Any, kind: Any, told: str) -> None:
    with pytest.raises(kind, match=f"the scheduler of lease `kube-system/policyengine` .*{told}"):
        await ask(saying(answer), IN_POD, "/debug/queue")


@pytest.mark.parametrize(
    "pages",
    [OFF, "http://10.0.0.1:80", "https://127.0.0.1:1", "http://127.0.0.1@evil:1", "kube-system/ftp:p:1",
     "a/http:../x:1", "a/http:b:1/x", "kube-system/https:p:1\n", "http://127.0.0.1:1/\r\nX: y"],
)  # fmt: skip
async def test_nothing_is_asked_where_a_lease_names_no_pod_and_no_loopback_url(pages: str) -> None:
    with pytest.raises(AccessDenied, match="shows no pages"):
        await ask(Client(ScriptedServer()), replace(IN_POD, pages=pages), "/debug/queue")


@pytest.mark.parametrize(
    ("url", "environment", "told"),
    [
        ("https://0.0.0.0:10259", {"POD_NAME": "p-1", "POD_NAMESPACE": "ns"}, "ns/https:p-1:10259"),
        ("http://10.0.0.1:9", {"POD_NAME": "p-1", "POD_NAMESPACE": "ns"}, "ns/http:p-1:9"),
        ("https://0.0.0.0:10259", {"POD_NAME": "p-1"}, OFF),
        ("http://127.0.0.1:10259", {"POD_NAME": "p-1", "POD_NAMESPACE": "ns"}, "http://127.0.0.1:10259"),
        ("http://[::1]:10259", {}, "http://[::1]:10259"),
        ("https://127.0.0.1:10259", {}, OFF),
    ],
)
def test_what_a_leader_says_of_its_pages(url: str, environment: dict[str, str], told: str) -> None:
    assert announced(url, environment) == told


async def test_a_leader_whose_pages_went_away_says_so_in_the_lease_it_takes_over() -> None:
    admin = MemoryTransport(ApiServer(SystemClock()), user=ADMIN)
    await create(admin, LEASES, lease("policyengine", holder="", pages="kube-system/https:old:1"))
    elector = LeaderElector(Client(admin), SystemClock(), random.Random(1), "new_1")
    elector.pages = OFF
    work = asyncio.ensure_future(elector.run())
    await elector.elected.wait()
    work.cancel()
    (found,) = await find(Client(admin), SystemClock().now(), "kube-system")
    assert (found.holder, found.pages) == ("new_1", OFF)
