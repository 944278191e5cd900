"""The attacks, each a function that goes on until a moment; a process of its own runs one.

    python -m tests.attacks.attacks NAME SECONDS MAP

MAP is `Site.map`. Rates and counts are bounded. Connections come from other addresses of loopback than those of the
scheduler and the kubelet: bounds are kept for each peer. It prints what it sent and the CPU time it took, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from policyengine.clock import SystemClock
from policyengine.kube.config.credentials import trusting
from policyengine.kube.http.client import ApiError, ConnectionFailed
from policyengine.simulator.controllers.controller_client import MERGE, Caller
from policyengine.simulator.real_server import connect
from tests.faults.objects import MAPS, NODES, PODS, pod
from tests.faults.process_cluster import SERVES
from tests.faults.test_real_processes import BURNS, MANY_TESTS
from tests.server.test_webhook import config_map, review

MIB = 1 << 20
PODS_BYTES = 200_000
"""A second. A core of the API server, which has cores of its own in a cluster, is through with some 500,000."""
CONTROLS = "\x1b[2J\r\nE1123 forged\u202e\x00\x07"
UNVERIFIED = trusting()
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Target(NamedTuple):
    """Where everything is, and until when."""

    ports: Mapping[str, int]
    folder: Path
    caller: Caller
    until: float

    def goes_on(self) -> bool:
        """Whether there is time left."""
        return asyncio.get_running_loop().time() < self.until

    async def paced(self, rate: float) -> AsyncIterator[int]:
        """0, 1, 2 and so on, so many a second, while there is time left."""
        began = asyncio.get_running_loop().time()
        for number in count():
            await asyncio.sleep(max(0.0, began + number / rate - asyncio.get_running_loop().time()))
            if not self.goes_on():
                return
            yield number


async def _connect(port: int, number: int, tls: bool = True) -> Peer:
    source = (f"127.0.0.{2 + number % 8}", 0)
    return await asyncio.open_connection("127.0.0.1", port, local_addr=source, ssl=UNVERIFIED if tls else None)


async def idle(at: Target) -> int:
    """300 connections to each port that say nothing, a tenth of them after the handshake; closed ones are replaced."""

    async def one(port: int, number: int) -> int:
        made = 0
        while at.goes_on():
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout_at(at.until):
                    reader, writer = await _connect(port, number, tls=number % 10 == 0)
                    made += 1
                    await reader.read()
                    writer.transport.abort()
            await asyncio.sleep(1)
        return made

    return sum(await asyncio.gather(*(one(port, number) for port in at.ports.values() for number in range(300))))


async def slow(at: Target) -> int:
    """40 connections to each port that send a byte a second, of headers or of a body."""
    heads = (
        b"POST /validate HTTP/1.1\r\nHost: a\r\nX: ",
        b"POST /calm/filter HTTP/1.1\r\nContent-Length: 99999\r\n\r\n",
    )

    async def one(port: int, number: int) -> int:
        made = 0
        while at.goes_on():
            with suppress(OSError):
                _, writer = await _connect(port, number)
                made += 1
                writer.write(heads[number % 2])
                while at.goes_on() and not writer.is_closing():
                    writer.write(b"a")
                    await asyncio.sleep(1)
                writer.transport.abort()
            await asyncio.sleep(1)
        return made

    return sum(await asyncio.gather(*(one(port, number) for port in at.ports.values() for number in range(40))))


async def large_bodies(at: Target) -> int:
    """119 MiB to each port, its length said or not, and 60 MiB of nodes, which the extender takes; two at once."""
    names = ",".join(
        json.dumps({"metadata": {"name": f"m{n}", "annotations": {"a": "x" * 12_000}}}) for n in range(5000)
    )
    nodes = f'{{"Pod": {json.dumps(pod("p"))}, "Nodes": {{"items": [{names}]}}}}'.encode()
    commas = b'{"Pod": {}, "Nodes": {"items": [' + b"[],[],[],[]," * (119 * MIB // 12)
    sent = 0

    async def pieces(body: bytes) -> AsyncIterator[bytes]:
        view = memoryview(body)
        for start in range(0, len(view), MIB):
            yield bytes(view[start : start + MIB])
            await asyncio.sleep(0.01)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False, local_addr=("127.0.0.9", 0))) as session:

        async def post(port: int, path: str, body: bytes, length: bool) -> None:
            headers = {"Content-Length": str(len(body))} if length else {}
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                where = f"https://127.0.0.1:{port}{path}"
                async with session.post(
                    where, data=pieces(body), headers=headers, timeout=aiohttp.ClientTimeout(60)
                ) as response:
                    await response.read()

        ports = at.ports
        ways = cycle(
            (
                (("extender", "/calm/filter", nodes, True), ("extender", "/calm/filter", commas, False)),
                (("extender", "/calm/prioritize", commas, True), ("webhook", "/validate", commas, False)),
                (("scheduler", "/livez", commas, False), ("extender", "/calm/preempt", nodes, False)),
            )
        )
        while at.goes_on():
            pair = [post(ports[name], path, body, length) for name, path, body, length in next(ways)]
            await asyncio.wait(
                [asyncio.ensure_future(one) for one in pair],
                timeout=max(0.0, at.until - asyncio.get_running_loop().time()),
            )
            sent += len(pair)
            await asyncio.sleep(0.5)
    return sent


def costly(number: int) -> str:
    """A policy whose tests take long, another one for each number."""
    return (BURNS, MANY_TESTS + " }")[number % 2].replace("100000s", f"{100_000 + number}s")


async def reviews(at: Target) -> int:
    """64 admission reviews of costly policies at once, again as soon as the last one is answered."""
    sent = 0
    connector = aiohttp.TCPConnector(ssl=False, limit=64, local_addr=("127.0.0.9", 0))
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(number: int) -> None:
            body = review(config_map({"p.policy": costly(number)}))
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                where = f"https://127.0.0.1:{at.ports['webhook']}/validate?timeout=5s"
                async with session.post(where, data=body, timeout=aiohttp.ClientTimeout(10)) as response:
                    await response.read()

        while at.goes_on():
            tasks = [asyncio.ensure_future(one(sent + number)) for number in range(64)]
            await asyncio.wait(tasks, timeout=max(0.0, at.until - asyncio.get_running_loop().time()))
            sent += 64
    return sent


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS: tuple[Callable[[int], Mapping[str, str]], ...] = (
    lambda number: {"main.policy": costly(number)},
    lambda number: {"main.policy": f'policy "deep{number}" {{ let x = {"(" * 29_000}1 }}'},
    lambda number: {"main.policy": f'// {number}{"x" * 900_000}\npolicy "large" {{ scheduler "large" }}'},
    lambda number: {"main.policy": f'policy "bomb{number}" {{ scheduler "bomb" }}', "params.yaml": BOMB},
    lambda number: {"main.policy": f'policy "good" {{ scheduler "good" score "s" weight {number % 9 + 1} = 1 }}'},
)


async def config_maps(at: Target) -> int:
    """ConfigMaps of five authors that change ten times a second: costly, deep, of 900 KB, a YAML bomb, a good one."""
    labels = {"policyengine.io/policy": "true"}
    for number in range(len(TEXTS)):
        item = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": f"flaps-{number}", "labels": labels}}
        with suppress(ApiError):
            await at.caller.call("POST", MAPS, item | {"data": {}})
    number = 0
    async for number in at.paced(10):
        which = number % len(TEXTS)
        with suppress(ApiError, ConnectionFailed):
            await at.caller.call("PATCH", f"{MAPS}/flaps-{which}", {"data": TEXTS[which](number)}, MERGE)
    return number


def strange(number: int) -> dict[str, Any]:
    """A pod that is malformed, or as large as the API server takes."""
    found = pod(f"strange-{number}", scheduler=SERVES)
    spec, meta = found["spec"], found["metadata"]
    match number % 7:
        case 0:
            meta["annotations"] = {f"a/{one}": CONTROLS + "x" * 2000 for one in range(100)}
        case 1:
            spec["containers"][0]["resources"] = {"requests": {"cpu": "9" * 400, "memory": "1e400Gi"}}
        case 2:
            spec["containers"] = [{**spec["containers"][0], "name": f"c{one}"} for one in range(3000)]
        case 3:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * 500}}
        case 4:
            spec |= {"nodeName": None, "tolerations": [{"operator": "Sometimes", "tolerationSeconds": -1}] * 500}
        case 5:
            spec |= {"priority": "high", "topologySpreadConstraints": [{"maxSkew": -(2**63)}], "volumes": [{"x": []}]}
        case 6:
            spec |= {"nodeSelector": {f"k{one}": CONTROLS for one in range(500)}}
    return found


async def pods(at: Target) -> int:
    """Malformed or huge pods, `PODS_BYTES` of them a second and five at most, of which the last fifty are there."""
    number = 0
    while at.goes_on():
        one = strange(number)
        with suppress(ApiError, ConnectionFailed):
            await at.caller.call("POST", PODS, one)
        if number >= 50:
            with suppress(ApiError, ConnectionFailed):
                await at.caller.call("DELETE", f"{PODS}/strange-{number - 50}", query={"gracePeriodSeconds": "0"})
        number += 1
        await asyncio.sleep(max(0.2, len(json.dumps(one)) / PODS_BYTES))
    return number


async def control_characters(at: Target) -> int:
    """10,000 Events, and annotations and taints of nodes, with control characters: 50 a second."""
    events = "/api/v1/namespaces/default/events"
    number = 0
    async for number in at.paced(50):
        with suppress(ApiError, ConnectionFailed):
            if number < 10_000:
                about = {"kind": "Pod", "name": CONTROLS, "namespace": "default"}
                meta = {"name": f"e{number}", "namespace": "default"}
                said = {"metadata": meta, "involvedObject": about, "reason": CONTROLS, "message": CONTROLS * 40}
                await at.caller.call("POST", events, {"kind": "Event", "apiVersion": "v1", **said})
            taint = {"key": f"k{CONTROLS}", "value": CONTROLS, "effect": "NoSchedule"}
            change = {"metadata": {"annotations": {f"a{number % 20}": CONTROLS * 40}}, "spec": {"taints": [taint]}}
            await at.caller.call("PATCH", f"{NODES}/n{number % 3}", change, MERGE)
    return number


async def log_flood(at: Target) -> int:
    """100 requests a second to each port that are no HTTP, no verb or no review, on connections that stay."""
    lines = cycle(
        (
            f"\x16\x03{CONTROLS}\r\n\r\n",
            "GET /debug/pods/x/%0a%1b[2J HTTP/1.1\r\nHost: a\r\n\r\n",
            'POST /calm/filter HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"Pod": 1',
            "POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
            "POST /calm/%0aforged HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        )
    )

    async def one(port: int, number: int) -> int:
        sent = 0
        while at.goes_on():
            with suppress(OSError, TimeoutError):
                _, writer = await _connect(port, number)
                while at.goes_on() and not writer.is_closing():
                    writer.write(next(lines).encode())
                    sent += 1
                    await asyncio.sleep(0.04)
                writer.transport.abort()
            await asyncio.sleep(0.1)
        return sent

    return sum(await asyncio.gather(*(one(port, number) for port in at.ports.values() for number in range(4))))


async def certificates(at: Target) -> int:
    """The certificate's files are replaced twice a second; each port is asked ten times a second meanwhile."""

    async def asks(port: int, number: int) -> None:
        while at.goes_on():
            with suppress(OSError, ssl.SSLError, TimeoutError):
                async with asyncio.timeout(5):
                    reader, writer = await _connect(port, number)
                    writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    await reader.read()
                    writer.transport.abort()
            await asyncio.sleep(0.1)

    asking = [asyncio.ensure_future(asks(port, number)) for number, port in enumerate(at.ports.values())]
    number = 0
    async for number in at.paced(2):
        for suffix in ("key", "crt"):
            new = at.folder / f"new.{suffix}"
            shutil.copy(at.folder / f"{('one', 'two')[number % 2]}.{suffix}", new)
            new.rename(at.folder / f"tls.{suffix}")
    await asyncio.gather(*asking)
    return number


ATTACKS: Mapping[str, Callable[[Target], Awaitable[int]]] = {
    "idle connections": idle,
    "slow headers and bodies": slow,
    "119 MiB bodies": large_bodies,
    "64 reviews at once": reviews,
    "ConfigMaps that flap": config_maps,
    "malformed and huge pods": pods,
    "control characters": control_characters,
    "log flood": log_flood,
    "certificates that rotate": certificates,
}


@asynccontextmanager
async def _target(map_: Mapping[str, Any], seconds: float) -> AsyncIterator[Target]:
    transport = connect(map_["url"], map_["token"])
    try:
        until = asyncio.get_running_loop().time() + seconds
        yield Target(map_["ports"], Path(map_["folder"]), Caller(transport, SystemClock(), "attacker"), until)
    finally:
        await transport.close()


async def main(name: str, seconds: str, map_: str) -> None:
    """Say that it begins, attack, and say how much."""
    print("ready", flush=True)
    sys.stdin.readline()
    async with _target(json.loads(map_), float(seconds)) as at:
        sent = await ATTACKS[name](at)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"sent": sent, "cpu": round(used.ru_utime + used.ru_stime, 1)}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
