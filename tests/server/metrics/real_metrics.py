"""The metrics of the real kube-scheduler after a few pods: `python -m tests.server.metrics.real_metrics`.

Prints what stands in `real_metrics.txt`: name, kind, stability, labels, buckets. A metric with labels shows once
something was counted in it, so the pods meet what most metrics count: room, none, victims.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp.test_utils import unused_port
from prometheus_client.parser import text_string_to_metric_families

from tests.server.extender.real_scheduler import SECONDS, World, started, world

RECORDED = Path(__file__).with_name("real_metrics.txt")
PREFIXES = ("scheduler_", "rest_client_", "workqueue_")
NONE = "-"


@dataclass(frozen=True)
class Described:
    """One metric, as a dashboard must know it."""

    name: str
    kind: str
    stability: str
    labels: tuple[str, ...]
    buckets: tuple[str, ...]
    """Upper bounds as they are written, `+Inf` left out."""

    @property
    def line(self) -> str:
        return " ".join((self.name, self.kind, self.stability, _joined(self.labels), _joined(self.buckets)))


def recorded() -> list[Described]:
    """What was recorded."""
    found = []
    for line in RECORDED.read_text().splitlines():
        name, kind, stability, labels, buckets = line.split(" ")
        found.append(Described(name, kind, stability, _split(labels), _split(buckets)))
    return found


def _joined(words: tuple[str, ...]) -> str:
    return ",".join(words) or NONE


def _split(text: str) -> tuple[str, ...]:
    return () if text == NONE else tuple(text.split(","))


def described(page: str) -> Iterator[Described]:
    """The metrics of a page that are the scheduler's own, and those of its clients and work queues."""
    for family in text_string_to_metric_families(page):
        if not family.name.startswith(PREFIXES):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        bounds = dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels)
        stability = re.match(r"\[(\w+)\]", family.documentation)
        yield Described(
            name,
            family.type,
            stability.group(1) if stability else NONE,
            tuple(sorted(labels)),
            tuple(bound for bound in bounds if bound != "+Inf"),
        )


async def real_page(folder: Path) -> str:
    """`/metrics` of a kube-scheduler that placed pods, refused one, and made room for one."""
    port = unused_port()
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    flags = (f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={folder}")
    open_to_all = "--authorization-always-allow-paths=/metrics"
    async with world(folder) as at, started(at, configuration, *flags, open_to_all):
        await _schedule(at)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{port}/metrics", ssl=False) as page,
        ):
            assert page.status == 200
            return await page.text()


async def _schedule(at: World) -> None:
    for name in ("a", "b"):
        await at.add_node(name, cpu="2")
    for number in range(4):
        await at.add_pod(f"low-{number}", cpu="1")
        assert await at.node_of(f"low-{number}")
    await at.add_pod("high", cpu="1", priority=100)
    assert await at.node_of("high", SECONDS)
    await at.add_pod("big", cpu="64")
    await at.add_node("c", cpu="1")
    await asyncio.sleep(1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = asyncio.run(real_page(Path(folder)))
    print("\n".join(sorted(one.line for one in described(page))))


if __name__ == "__main__":
    main()
