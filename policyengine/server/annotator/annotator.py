"""The annotator at work: read the nodes, measure, write what changed; once, or over and over.

Rules:
1. A source that fails costs a round, never the loop: what was written stays, and is marked stale in time.
2. A problem is told once, and again only after a round without it.
3. A node that is gone by the time it is written to is no problem.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from policyengine.clock import Clock
from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectError, decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.server.annotator.annotations import Patch, Settings, patch_of, requested_of
from policyengine.server.annotator.forecasting import Forecaster
from policyengine.server.annotator.measurement import (
    MEASURED,
    RESOURCE,
    Measured,
    MeasuredNode,
    QueryRefused,
    Source,
    SourceUnreachable,
    Statistics,
    named,
    read_nodes,
    statistics_of,
)

logger = logging.getLogger(__name__)

WRITERS = 8
"""Patches under way at once."""

PODS = Kind("Pod", "pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    nodes: int
    measured: int
    written: int
    failed: int


class Annotator:
    """Writes what a source measures to the nodes of one cluster."""

    def __init__(
        self,
        source: Source,
        client: Client,
        clock: Clock,
        settings: Settings,
        forecaster: Forecaster | None = None,
        on_problem: Callable[[str], None] = logger.warning,
    ) -> None:
        """Without a `forecaster` nothing is forecast."""
        self._source = source
        self._client = client
        self._clock = clock
        self._settings = settings
        self._forecaster = forecaster
        self._on_problem = on_problem
        self._told: set[str] = set()
        self._problems: set[str] = set()

    async def round(self) -> Round:
        """One round. Raises `SourceUnreachable`, `QueryRefused` (after what is stale was marked), `ApiError` and
        `ConnectionFailed` where the nodes cannot be read."""
        now = self._clock.now()
        nodes = await read_nodes(self._client)
        try:
            measured = await self._source.measure(now, nodes)
        except (SourceUnreachable, QueryRefused):
            await self._write(dict(self._patches(nodes, Measured(), now)))
            raise
        for problem in measured.problems:
            self._problem(problem)
        if self._forecaster is None:
            patches = dict(self._patches(nodes, measured, now))
        else:  # each forecast takes some ten milliseconds of a core
            patches = await asyncio.to_thread(lambda: dict(self._patches(nodes, measured, now)))
        if self._settings.requested:
            requested = await read_requested(self._client)
            for name, node in nodes.items():
                had, said = node.metadata.annotations, requested_of(node, requested.get(name, {}))
                news: Patch = {key: text for key, text in said.items() if had.get(key) != text}
                if news:
                    patches[name] = {**patches.get(name, {}), **news}
        failed = await self._write(patches)
        known = sum(any(by_node.get(name) for by_node in measured.windows.values()) for name in nodes)
        return Round(len(nodes), known, len(patches) - failed, failed)

    async def run(self, stop: asyncio.Event, interval: float) -> None:
        """A round every `interval` seconds until `stop` is set."""
        while not stop.is_set():
            try:
                done = await self.round()
                logger.info("%d of %d nodes measured, %d written", done.measured, done.nodes, done.written)
            except (SourceUnreachable, QueryRefused) as error:
                self._problem(f"{error}; the annotations stay as they are")
            except (ApiError, ConnectionFailed) as error:
                self._problem(f"the nodes cannot be read: {error}")
            self._told, self._problems = self._problems, set()
            await self._pause(stop, interval)

    def _patches(
        self, nodes: Mapping[str, MeasuredNode], measured: Measured, now: float
    ) -> Iterator[tuple[str, Patch]]:
        for name, node in nodes.items():
            load: dict[str, Statistics] = {}
            for what in MEASURED:
                samples, day = (by.get(what, {}).get(name, ()) for by in (measured.windows, measured.days))
                forecast = None if self._forecaster is None else self._forecaster.of(f"{what} {name}", day)
                if (found := statistics_of(samples, forecast)) is not None:
                    load[what] = found
            patch = patch_of(node, load, self._settings, now)
            if patch:
                yield name, patch

    async def _write(self, patches: Mapping[str, Patch]) -> int:
        """How many could not be written."""
        shared, failed = iter(patches.items()), dict[str, str]()
        await asyncio.gather(*(self._write_next(shared, failed) for _ in range(WRITERS)))
        if failed:
            self._problem(f"{named(failed)} cannot be annotated: {failed[min(failed)]}")
        return len(failed)

    async def _write_next(self, patches: Iterator[tuple[str, Patch]], failed: dict[str, str]) -> None:
        for name, patch in patches:
            try:
                await self._client.call("PATCH", RESOURCE.path(name=name), {"metadata": {"annotations": patch}})
            except (ApiError, ConnectionFailed) as error:
                if not (isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND):
                    failed[name] = str(error)

    def _problem(self, text: str) -> None:
        if text not in self._told and text not in self._problems:
            self._on_problem(text)
        self._problems.add(text)

    async def _pause(self, stop: asyncio.Event, seconds: float) -> None:
        waiting = {asyncio.create_task(stop.wait()), asyncio.create_task(self._clock.sleep(seconds))}
        _, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def read_requested(client: Client) -> dict[str, Counter[str]]:
    """Node -> what its pods ask for by resource. Raises `ApiError`, `ConnectionFailed`."""
    found: dict[str, Counter[str]] = {}
    async for raw in client.list_all(PODS):
        with suppress(ObjectError):
            pod = PodInfo(decode(Pod, raw))
            if pod.node_name:
                found.setdefault(pod.node_name, Counter()).update({**dict(pod.requests.items()), "pods": 1})
    return found
