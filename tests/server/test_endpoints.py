"""The pages of a running scheduler, over HTTP: what they say, to whom, and what they keep to themselves."""

import asyncio
import json
import logging
import random
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from policyengine.clock import SystemClock
from policyengine.kube.config.configuration import read
from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.server.callers import Reviewer
from policyengine.server.endpoints import Endpoints, served
from policyengine.server.listening import CannotListen
from policyengine.server.metrics.observed import ObservedCore
from policyengine.server.metrics.readings import read_before_scrape
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.api_server.statuses import forbidden
from policyengine.simulator.sandbox import create, node
from policyengine.version import __version__
from tests.faulty_server.effects import Fail
from tests.faulty_server.server import FaultyServer
from tests.server.annotator.test_prometheus import real_prometheus
from tests.simulator.api_server.keys import Keys

HEAD = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"
LOCAL = 'endpoints: {address: "127.0.0.1:0"}\n'
PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Site:
    url: str
    scheduler: Scheduler
    outside: MemoryTransport
    session: aiohttp.ClientSession
    api: FaultyServer

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.session.get(self.url + path, headers=headers) as response:
            return response.status, await response.text()

    async def until(self, path: str, holds: Callable[[int, str], bool]) -> str:
        async with asyncio.timeout(30):
            while True:
                status, text = await self.get(path)
                if holds(status, text):
                    return text
                await asyncio.sleep(0.02)


@asynccontextmanager
async def site(text: str = LOCAL, review: bool = False, start: bool = True) -> AsyncIterator[Site]:
    clock = SystemClock()
    users = {"good": User("monitor", ("system:masters",)), "poor": User("nobody", ("system:authenticated",))}
    api = FaultyServer(clock, tokens=users)
    outside = MemoryTransport(api, user=ADMIN)
    for name in ("node-1", "node-2"):
        await create(outside, "/api/v1/nodes", node(name, "a"))
    client = Client(MemoryTransport(api, user=ADMIN))
    metrics = SchedulerMetrics()
    configuration = read(HEAD + text, "x")
    scheduler = Scheduler(
        client, clock, random.Random(1), [default_profile()], observed=lambda state: ObservedCore(state, metrics)
    )
    read_before_scrape(metrics, scheduler, clock)
    reviewer = Reviewer(client) if review else None
    pages = Endpoints(scheduler, metrics, configuration.data, client, clock, reviewer)
    stop = asyncio.Event()
    async with served(pages, configuration) as url, aiohttp.ClientSession() as session:
        task = asyncio.ensure_future(scheduler.run(stop)) if start else None
        try:
            yield Site(url, scheduler, outside, session, api)
        finally:
            stop.set()
            if task is not None:
                await task


async def pod(at: Site, name: str, cpu: str = "100m", **metadata: Any) -> None:
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": cpu}},
        "env": [{"name": "K", "value": "s3"}],
    }
    await create(
        at.outside, PODS, {"kind": "Pod", "metadata": {"name": name, **metadata}, "spec": {"containers": [container]}}
    )


async def test_a_scheduler_that_has_not_listed_yet_is_alive_and_says_why_it_is_not_ready() -> None:
    async with site(start=False) as at:
        assert await at.get("/livez") == (200, "ok")
        waits = "[-]caches failed: the first lists are not in"
        status, text = await at.get("/readyz")
        assert status == 503 and waits in text
        at.scheduler.waits_for("the API server does not let nodes be listed yet")
        status, text = await at.get("/readyz")
        assert status == 503 and f"{waits}: the API server does not let nodes be listed yet" in text


async def test_bindings_that_are_refused_for_want_of_a_right_make_it_unready() -> None:
    why = 'User "s" cannot create resource "pods/binding" in API group "" in the namespace "default"'
    async with site() as at:
        await at.until("/readyz", lambda status, _: status == 200)
        refused = at.api.faults.add(Fail(forbidden("pods", "", "a", why)), resource="pods", subresource="binding")
        await pod(at, "a")
        text = await at.until("/readyz", lambda status, _: status == 503)
        assert f'[-]bindings failed: pods of namespace `default` may not be bound: pods "a" is forbidden: {why}' in text
        at.api.faults.rules.remove(refused)
        await at.until("/readyz", lambda status, _: status == 200)


async def test_a_scheduler_that_runs_is_ready_check_by_check_unless_a_watch_fails_for_long() -> None:
    async with site() as at:
        await at.until("/readyz", lambda status, _: status == 200)
        checks = ("leaderElection", "caches", "policies", "watches", "bindings")
        _, text = await at.get("/readyz?verbose")
        assert text.splitlines() == [*(f"[+]{check} ok" for check in checks), "check passed"]
        # A watch that fails for long makes it unready.
        at.scheduler.runner.informers.reflectors[1].failing_since = SystemClock().monotonic() - 60
        status, text = await at.get("/readyz")
        assert status == 503 and "no list or watch of pods succeeds" in text
        assert (await at.get("/livez"))[0] == 200


async def test_the_pages_tell_of_pods_and_nodes_and_no_secrets() -> None:
    async with site() as at:
        await pod(at, "small", annotations={"secret": "hunter2"})
        await pod(at, "big", cpu="64")
        await at.until(
            "/debug/queue", lambda _, text: "unschedulable" in json.loads(text)["pods"].get("default/big", {}).values()
        )
        await at.until("/debug/cache", lambda _, text: json.loads(text)["pods"]["default/small"]["state"] == "bound")
        _, metrics = await at.get("/metrics")
        assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in metrics
        _, story = await at.get("/debug/pods/default/big")
        assert json.loads(story)["place"] == "unschedulable"
        assert (await at.get("/debug/pods/default/none"))[0] == 404
        assert "\x1b" not in (await at.get("/debug/pods/default/%1b[2J"))[1]
        _, compared = await at.get("/debug/cache/compare")
        assert json.loads(compared) == {
            "servedBy": {"identity": socket.gethostname(), "leads": True},
            "nodes": {"onlyInCache": [], "onlyOnServer": []},
            "pods": {"onlyInCache": [], "onlyOnServer": []},
            "recreated": [],
            "elsewhere": {},
        }
        for path in ("/debug/queue", "/debug/cache", "/debug/pods/default/small", "/metrics", "/configz"):
            _, text = await at.get(path)
            assert "hunter2" not in text and "s3" not in text


async def test_configz_has_no_keys_and_a_comparison_names_what_the_cache_lacks() -> None:
    text = LOCAL + "extenders: [{urlPrefix: https://a, tlsConfig: {keyData: c2VjcmV0}}]\n"
    async with site(text, start=False) as at:
        _, compared = await at.get("/debug/cache/compare")
        assert json.loads(compared)["nodes"]["onlyOnServer"] == ["node-1", "node-2"]
        _, shown = await at.get("/configz")
        assert json.loads(shown)["leaderElection"]["leaseDuration"] == "15s"
        assert "c2VjcmV0" not in shown


async def test_the_log_level_changes_while_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    ours = logging.getLogger("policyengine")
    before = ours.level
    try:
        async with site(start=False) as at:
            for body, status, level in (
                (b"debug", 200, "debug"),
                (b"2\n", 200, "info"),
                (b"10", 200, "debug"),
                (b"Error", 200, "error"),
                (b"loud", 400, "error"),
                (b"\xff", 400, "error"),
                (b"", 400, "error"),
                (b"0" * 5000, 413, "error"),
            ):
                async with at.session.put(at.url + "/debug/flags/v", data=body) as response:
                    assert response.status == status, body
                assert await at.get("/debug/flags/v") == (200, f"{level}\n")
        assert ours.level == logging.ERROR
    finally:
        ours.setLevel(before)


async def a_profile_is_under_way() -> None:
    while not signal.getitimer(signal.ITIMER_PROF)[1]:  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0.01)


async def test_one_profile_at_a_time_tells_what_the_scheduler_does() -> None:
    async with site() as at:
        first = asyncio.create_task(at.get("/debug/pprof/profile?seconds=1"))
        await a_profile_is_under_way()
        assert (await at.get("/debug/pprof/profile?seconds=1"))[0] == 429
        ends = asyncio.get_running_loop().time() + 0.5
        while asyncio.get_running_loop().time() < ends:
            sum(range(10_000))
            await asyncio.sleep(0)
        status, text = await first
        assert status == 200 and "test_one_profile_at_a_time" in text.splitlines()[0]
        for seconds in ("0", "61", "-1", "1e9", "x", "\u0663"):
            assert (await at.get(f"/debug/pprof/profile?seconds={seconds}"))[0] == 400


async def test_a_profile_keeps_nobody_from_ending() -> None:
    async with site(start=False) as at:
        waiting = asyncio.create_task(at.get("/debug/pprof/profile?seconds=60"))
        await a_profile_is_under_way()
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 5
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_real_prometheus_takes_every_metric(tmp_path: Path) -> None:
    async with site() as at:
        await pod(at, "small")
        await at.until("/debug/cache", lambda _, text: "bound" in text)
        _, page = await at.get("/metrics")
        scraped = [{"targets": [at.url.removeprefix("http://")]}]
        async with real_prometheus(tmp_path, scraped) as url:

            async def value(query: str) -> float | None:
                with suppress(aiohttp.ClientError):
                    async with at.session.get(f"{url}/api/v1/query", params={"query": query}) as response:
                        found = (await response.json())["data"]["result"]
                        return float(found[0]["value"][1]) if found else None
                return None

            async with asyncio.timeout(30):
                while await value("up") != 1:  # noqa: ASYNC110  (it tells nobody)
                    await asyncio.sleep(0.1)
            assert await value("process_resident_memory_bytes > 1e6")
            assert await value("process_open_fds") and await value("process_cpu_seconds_total")
            assert await value(f'policyengine_build_info{{version="{__version__}"}}') == 1
            assert await value('workqueue_adds_total{name="writes"}') == 1
            assert await value('histogram_quantile(0.5, workqueue_work_duration_seconds_bucket{name="writes"})')
            shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
            assert await value("scrape_samples_scraped") == sum(not line.startswith("#") for line in page.splitlines())
            assert {"policyengine_build_info", "process_start_time_seconds"} <= shown


async def test_with_token_review_only_health_is_open_to_all() -> None:
    async with site(review=True, start=False) as at:
        assert (await at.get("/livez"))[0] == 200
        assert (await at.get("/metrics"))[0] == 401
        assert (await at.get("/metrics", Authorization="Bearer wrong"))[0] == 401
        assert await at.get("/metrics", Authorization="Bearer \udc9c") == (401, "show a bearer token\n")
        status, text = await at.get("/metrics", Authorization="Bearer poor")
        assert (status, text) == (403, "`nobody` may not get `/metrics`\n")
        assert (await at.get("/metrics", Authorization="Bearer good"))[0] == 200


async def test_where_tokens_are_asked_for_and_no_certificate_is_given_the_process_makes_its_own() -> None:
    text = 'endpoints: {address: "127.0.0.1:0", authentication: TokenReview}\n'
    async with site(text, review=True, start=False) as at:
        assert at.url.startswith("https://")
        anybody = ssl._create_unverified_context()
        for token, status in (("good", 200), ("wrong", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            async with at.session.get(at.url + "/debug/queue", ssl=anybody, headers=headers) as response:
                assert response.status == status


async def test_pages_may_ask_for_a_client_certificate(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    certificate, key = keys.sign("pages", "/CN=127.0.0.1")
    files = {"tlsCertFile": certificate, "tlsPrivateKeyFile": key, "clientCAFile": tmp_path / "ca.crt"}
    given = {name: str(path) for name, path in files.items()} | {"address": "127.0.0.1:0", "clientNames": ["p"]}
    nobody, somebody = ssl._create_unverified_context(), ssl._create_unverified_context()
    somebody.load_cert_chain(*keys.sign("caller", "/CN=p"))
    async with site(json.dumps({"endpoints": given})[1:-1] + "\n", start=False) as at:
        for path, who, status in (("/livez", nobody, 200), ("/metrics", nobody, 401), ("/metrics", somebody, 200)):
            async with at.session.get(at.url + path, ssl=who) as response:
                assert response.status == status


async def test_without_authentication_debug_pages_are_asked_by_a_loopback_name_alone() -> None:
    async with site(start=False) as at:
        ours = ("localhost:10259", "[::1]:10259", "127.0.0.1")
        for name, status in (*((one, 200) for one in ours), ("evil.example:10259", 403)):
            assert (await at.get("/debug/queue", Host=name))[0] == status
            assert (await at.get("/debug/flags/v", Host=name))[0] == status
            assert (await at.get("/metrics", Host=name))[0] == 200


async def test_only_get_is_answered_and_bodies_and_headers_are_bounded() -> None:
    async with site(start=False) as at:
        async with at.session.post(at.url + "/metrics", data=b"x" * 100_000) as response:
            assert response.status in (405, 413)
        assert (await at.get("/livez", **{"X-Long": "x" * 100_000}))[0] == 400


async def test_a_certificate_that_is_none_is_said_to_be(tmp_path: Any) -> None:
    path = tmp_path / "c.pem"
    path.write_text("nonsense")
    with pytest.raises(CannotListen, match=r"certificate `.*` cannot be used"):
        async with site(f'endpoints: {{address: "127.0.0.1:0", tlsCertFile: "{path}"}}\n', start=False):
            pass


async def test_pages_to_look_at_are_behind_the_same_door_and_can_be_left_out() -> None:
    async with site(start=False) as at:
        assert (await at.get("/ui/"))[0] == 200
        assert (await at.get("/ui/", Host="evil.example"))[0] == 403
    async with site(review=True, start=False) as at:
        for path in ("/", "/ui/", "/ui/static/pages.css", "/ui/pods/default/p"):
            assert (await at.get(path))[0] == 401
            assert (await at.get(path, Authorization="Bearer poor"))[0] == 403
        status, shown = await at.get("/ui/", Authorization="Bearer good")
        assert status == 200 and "good" not in shown
    for off, debug in (("page: false", 200), ("debug: false", 404)):
        async with site(f'endpoints: {{address: "127.0.0.1:0", {off}}}\n', start=False) as at:
            asked = ("/ui/", "/", "/debug/queue", "/metrics")
            assert [(await at.get(path))[0] for path in asked] == [404, 404, debug, 200]


async def test_pages_follow_the_scheduler_that_runs() -> None:
    async with site() as at:
        await pod(at, "big", cpu="64")
        await at.until("/ui/pods", lambda _, text: "default/big" in text and "Insufficient cpu" in text)
        await at.until("/ui/", lambda _, text: "it leads" in text and "NodeResourcesFit" in text)
