"""What Prometheus may answer, from a server that says it; and a real one where it is installed."""

import asyncio
import json
import math
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port

from policyengine.clock import SystemClock
from policyengine.commands.main import main
from policyengine.kube.http.client import Client
from policyengine.server.annotator import measuring
from policyengine.server.annotator.annotations import Settings
from policyengine.server.annotator.annotator import Annotator
from policyengine.server.annotator.measurement import MeasuredNode, Naming, QueryRefused, SourceUnreachable
from policyengine.server.annotator.measuring import QUERIES, Prometheus
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.sandbox import create, kubeconfig, write_kubeconfig
from tests.server.annotator.world import node, node_object

HOST = "127.0.0.1"
NODES: dict[str, MeasuredNode] = {"a": node("a", addresses=["10.0.0.1"]), "b": node("b")}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def site(path: str, handler: Handler) -> AsyncIterator[int]:
    application = web.Application()
    application.router.add_route("*", path, handler)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@asynccontextmanager
async def answering(body: Any, status: int = 200, asked: list[Any] | None = None) -> AsyncIterator[Prometheus]:
    async def answer(request: web.Request) -> web.Response:
        if asked is not None:
            asked.append({**await request.post()})
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=status, content_type="application/json")

    async with site("/api/v1/query_range", answer) as port:
        source = Prometheus(
            f"http://{HOST}:{port}/", {"cpu": "cpu", "memory": "memory"}, Naming(), 60.0, 30.0, "secret"
        )
        yield source
        await source.close()


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> Any:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


async def test_series_become_samples_of_the_nodes_they_name() -> None:
    asked: list[Any] = []
    body = matrix(
        ({"instance": "10.0.0.1:9100"}, [(940.0, "1.5"), (970.0, "NaN"), (1000.0, "+Inf")]),
        ({"node": "b"}, [(1000.0, "2")]),
        ({"node": "nobody"}, [(1000.0, "3")]),
    )
    async with answering(body, asked=asked) as source:
        found = await source.measure(1000.0, NODES)
    assert (
        found.windows["cpu"]["a"][0] == (940.0, 1.5)
        and math.isnan(found.windows["cpu"]["a"][1][1])
        and math.isinf(found.windows["cpu"]["a"][2][1])
    )
    assert found.windows["cpu"].keys() == {"a", "b"} and found.problems == () and "congestion" not in found.windows
    assert asked[0] == {"query": "cpu", "start": "940.000", "end": "1000.000", "step": "30"}


async def test_two_series_of_a_node_and_none_of_any_are_told() -> None:
    async with answering(matrix(({"node": "a"}, [(1.0, "1")]), ({"node": "a"}, [(1.0, "2")]))) as source:
        found = await source.measure(1.0, NODES)
    assert found.windows["cpu"] == {"a": [(1.0, 1.0)]} and "more than one series" in found.problems[0]
    async with answering(matrix(({"node": "x"}, [(1.0, "1")]))) as source:
        assert "`x` is the name or address of none" in (await source.measure(1.0, NODES)).problems[0]
    series = [({"node": name, "mode": mode}, [(1.0, "1")]) for mode in ("idle", "user") for name in ("b", "a")]
    async with answering(matrix(*series)) as source:
        assert (await source.measure(1.0, NODES)).problems == tuple(
            f"the query `{query}` gives node `a` and others more than one series; the first one counts"
            for query in ("cpu", "memory")
        )


@pytest.mark.parametrize(
    ("body", "status", "error", "message"),
    [
        (
            {"status": "error", "errorType": "bad_data", "error": "1:4: parse error"},
            400,
            QueryRefused,
            "refuses the query `cpu`: 1:4: parse error",
        ),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}, 200, QueryRefused, "a scalar"),
        ("<html>no</html>", 200, SourceUnreachable, "does not answer as Prometheus"),
        ("bad gateway", 502, SourceUnreachable, r"\(502\): bad gateway"),
        ("who are you", 401, QueryRefused, r"refuses us \(401\)"),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": [{"values": [["x"]]}]}},
            200,
            SourceUnreachable,
            "answer as",
        ),
        (matrix(({"node": "a"}, [(1.0, "much")])), 200, SourceUnreachable, "answer as"),
    ],
)
async def test_an_answer_that_is_none_is_one_sentence(
    body: Any, status: int, error: type[Exception], message: str
) -> None:
    async with answering(body, status) as source:
        with pytest.raises(error, match=message) as caught:
            await source.measure(1.0, NODES)
    assert "\n" not in str(caught.value)


async def test_a_prometheus_that_answers_late_is_one_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SECONDS", 0.1)
    over = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    async with site("/api/v1/query_range", answer) as port:
        source = Prometheus(f"http://{HOST}:{port}/", {"cpu": "cpu", "memory": "memory"}, Naming(), 60.0, 30.0, "")
        with pytest.raises(SourceUnreachable) as caught:
            await source.measure(1.0, NODES)
        over.set()
        await source.close()
    assert str(port) in str(caught.value) and not str(caught.value).rstrip().endswith(":")


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Path]:
    """An embedded API server with node `a`; its kubeconfig."""
    api = ApiServer(SystemClock())
    await create(MemoryTransport(api, user=ADMIN), "/api/v1/nodes", node_object("a"))
    served = await serve(api)
    write_kubeconfig(folder / "kubeconfig", kubeconfig(served.url))
    yield folder / "kubeconfig"
    await served.stop()


async def annotate(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "policyengine.commands.main", "annotate", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_the_command_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"status": "error", "error": "parse error"}, status=400)

    async with cluster(tmp_path) as path, site("/api/v1/query_range", refuse) as port:
        once = ("--once", f"--kubeconfig={path}")
        code, said = await annotate(*once, f"--prometheus=http://{HOST}:1")
        assert (
            code == 3 and said.startswith(f"error: cannot reach Prometheus `http://{HOST}:1`") and said.count("\n") == 1
        )
        code, said = await annotate(*once, f"--prometheus=http://{HOST}:{port}")
        assert code == 2 and "parse error" in said and said.count("\n") == 1
        code, said = await annotate(*once, "--metrics-server")
        assert code == 3 and "metrics.k8s.io" in said


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--once", "name one source"),
        ("--prometheus=x", "is a URL"),
        ("--metrics-server --window=soon", "is not a duration"),
        ("--metrics-server --window=0s", "is not longer than nothing"),
        ("--metrics-server --node-pattern=(", "no regular expression"),
        ("--metrics-server --remove-after=1m", "longer than --stale-after"),
        ("--metrics-server --congestion-query=x", "needs --prometheus"),
        ("--prometheus=http://p --prometheus-token-file=absent", "cannot read `absent`"),
    ],
)
def test_options_that_cannot_be_used_are_told(wrong: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["annotate", *wrong.split()])
    assert caught.value.code == 2 and message in capsys.readouterr().err


@asynccontextmanager
async def real_prometheus(folder: Path, scraped: list[Any]) -> AsyncIterator[str]:
    """Debian's package, scraping five times a second."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not on PATH")
    port = unused_port()
    jobs = [{"job_name": "nodes", "static_configs": scraped}]
    quick = {"scrape_interval": "200ms", "scrape_timeout": "200ms"}
    (folder / "prometheus.yml").write_text(json.dumps({"global": quick, "scrape_configs": jobs}))
    flags = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}")
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *flags, f"--web.listen-address={HOST}:{port}", stdout=log, stderr=log, cwd=folder
        )
    try:
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        await process.wait()


async def test_a_real_prometheus_is_asked_what_its_nodes_have_free(tmp_path: Path) -> None:
    started = time.monotonic()

    async def exporter(request: web.Request) -> web.Response:
        elapsed = time.monotonic() - started
        lines = ["# TYPE node_cpu_seconds_total counter"]
        for cpu in range(4):
            lines.append(f'node_cpu_seconds_total{{cpu="{cpu}",mode="idle"}} {elapsed * 0.75}')
            lines.append(f'node_cpu_seconds_total{{cpu="{cpu}",mode="user"}} {elapsed * 0.25}')
        lines += ["# TYPE node_memory_MemAvailable_bytes gauge", f"node_memory_MemAvailable_bytes {5 * 2**30}"]
        lines += ["# TYPE congestion gauge", "congestion 41.7"]
        return web.Response(text="\n".join(lines) + "\n")

    api = MemoryTransport(ApiServer(SystemClock()), user=ADMIN)
    for made in (node_object("named"), node_object("addressed", addresses=[HOST]), node_object("dark")):
        await create(api, "/api/v1/nodes", made)

    async def annotations(name: str) -> dict[str, str]:
        response = await api.request("GET", f"/api/v1/nodes/{name}")
        found: dict[str, str] = json.loads(await response.read())["metadata"].get("annotations", {})
        return found

    async with site("/metrics", exporter) as port, site("/metrics", exporter) as other:
        scraped = [
            {"targets": [f"{HOST}:{port}"], "labels": {"node": "named"}},
            {"targets": [f"{HOST}:{other}"]},
            {"targets": [f"{HOST}:1"], "labels": {"node": "dark"}},
        ]
        async with real_prometheus(tmp_path, scraped) as url:
            idle = 'sum by (instance, node) (rate(node_cpu_seconds_total{mode="idle"}[2s]))'
            source = Prometheus(
                url, {**QUERIES, "cpu": idle, "congestion": "congestion"}, Naming(), window=2.0, step=0.2
            )
            annotator = Annotator(source, Client(api), SystemClock(), Settings(congestion=True))
            deadline = time.monotonic() + 60
            found: dict[str, str] = {}
            # The first rates are too low: the window reaches back to before the first scrape.
            while not (2700 < int(found.get("mean-free-cpu", "0")) < 3300 and await annotations("addressed")):
                assert time.monotonic() < deadline, (tmp_path / "prometheus.log").read_text()
                with suppress(SourceUnreachable):
                    await annotator.round()
                await asyncio.sleep(0.2)
                found = await annotations("named")
            with pytest.raises(QueryRefused, match=r"refuses the query `sum\(`: .*parse error"):
                wrong = Prometheus(url, {**QUERIES, "cpu": "sum("}, Naming(), 5.0, 0.5)
                try:
                    await wrong.measure(time.time(), NODES)
                finally:
                    await wrong.close()
            await source.close()
    assert found["mean-free-memory"] == str(5 * 2**30)
    assert found["std-free-memory"] == "0" and found["congestion-factor"] == "42"
    assert found["policyengine.io/usage-memory"] == str(3 * 2**30)
    assert await annotations("dark") == {}


async def test_an_answer_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyengine.server.annotator.measuring.MOST", 1 << 20)
    many = matrix(*(({"node": f"n{number}"}, [(1.0, "1" * 100)] * 10) for number in range(1000)))
    async with answering(many) as source:
        with pytest.raises(QueryRefused, match="the query `cpu` gives more than 1 MiB: have it give one series a node"):
            await source.measure(1.0, NODES)
