"""The rewards at work: follow the pods, keep what they teach, and write it to the nodes.

Rules:
1. What a pod taught is saved before it is written to a node: after a restart nothing is counted twice, and nothing of
   what nodes say is lost.
2. A store or a server that fails costs a round, never the loop.
3. An annotation is written where its value changed by `TOLERANCE`; one whose evidence is forgotten is removed. Only
   annotations under our prefix are touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import NODES, Kind
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.stores import Store, StoreError
from policyengine.kube.watching.history import ServerHistory
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import Deleted
from policyengine.server.rewards.book import FAILED, Book, WatchedEvent, dump, load

logger = logging.getLogger(__name__)

KEY = "rewards.json"
"""The key of the ConfigMap that holds the state."""
PREFIX = "rewards.policyengine.io/"
TOLERANCE = 0.01


PODS = Kind("Pod", "pods", Pod)
"""Finished ones too: how they ended is what is to be learnt."""
EVENTS = Kind(
    "Event", "events", WatchedEvent, "/apis/events.k8s.io/v1", field_selector=f"reason={FAILED}", is_optional=True
)


@dataclass(frozen=True, slots=True)
class Settings:
    """All in seconds."""

    half_life: float = 3600.0
    patience: float = 300.0
    """After which a bound pod that has not started counts as failed."""
    interval: float = 10.0


class Monitor:
    """Learns from one cluster's pods."""

    def __init__(
        self,
        client: Client,
        store: Store,
        clock: Clock,
        random: Random,
        settings: Settings,
        on_problem: Callable[[str], None] = logger.warning,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._settings = settings
        self._on_problem = on_problem
        self._book = Book(settings.half_life)
        self._saved = ""
        self._nodes: dict[str, Mapping[str, str]] = {}
        """Node -> its annotations under our prefix, as last seen or written."""
        history = ServerHistory(None, clock)
        self._pods = Reflector(client, PODS, clock, random, history=history, on_problem=on_problem)
        self._followed = Reflector(client, NODES, clock, random, history=history, on_problem=on_problem)
        self._events = Reflector(client, EVENTS, clock, random, history=history, on_problem=on_problem)

    async def run(self, stop: asyncio.Event) -> None:
        """Learn until `stop` is set. Raises `StoreError` where the state cannot be read at the start."""
        text = await self._store.load()
        if text is not None:
            try:
                self._book = load(text, self._settings.half_life)
            except ValueError as error:
                raise StoreError(str(error)) from error
        work = (self._follow_pods, self._follow_nodes, self._follow_events, self._rounds)
        tasks = [asyncio.create_task(one()) for one in work]
        stopped = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopped}:
                task.result()
        finally:
            for task in (stopped, *tasks):
                task.cancel()
            await asyncio.gather(stopped, *tasks, return_exceptions=True)
        await self.round()

    async def round(self) -> None:
        """Save what was learnt, and write it to the nodes."""
        now = self._clock.now()
        if not (self._pods.synced.is_set() and self._followed.synced.is_set()):
            return
        self._book.wait(now, self._settings.patience)
        rewards = self._book.rewards(now)
        try:
            await self._save()
        except StoreError as error:
            self._on_problem(str(error))
            return
        for node, written in list(self._nodes.items()):
            patch = changes(written, rewards.get(node, {}))
            if patch:
                await self._write(node, patch)

    async def _save(self) -> None:
        text = dump(self._book)
        if text != self._saved:
            await self._store.save(text)
            self._saved = text

    async def _write(self, node: str, patch: Mapping[str, str | None]) -> None:
        try:
            await self._client.call("PATCH", NODES.path(name=node), {"metadata": {"annotations": patch}})
        except (ApiError, ConnectionFailed) as error:
            self._on_problem(f"node `{node}` cannot be annotated: {error}")
            return
        kept = {**self._nodes.get(node, {}), **patch}
        self._nodes[node] = {key: value for key, value in kept.items() if value is not None}

    async def _rounds(self) -> None:
        while True:
            await self._clock.sleep(self._settings.interval)
            await self.round()

    async def _follow_pods(self) -> None:
        book = self._book
        await self._follow(self._pods, book.observe, book.gone, book.pods)

    async def _follow_events(self) -> None:
        await self._pods.synced.wait()  # whose they are is known by then
        book = self._book
        await self._follow(self._events, book.heard, book.over, book.refusals)

    async def _follow(
        self,
        reflector: Reflector[Any],
        observe: Callable[[Any, float], None],
        forget: Callable[[str], None],
        known: Mapping[str, object],
    ) -> None:
        """Tell the book of every change. What a saved book knows (`known`, by UID) and the first list lacks is gone."""
        listed: set[str] | None = set()
        async for batch in reflector.batches():
            for change in batch:
                if isinstance(change, Deleted):
                    forget(change.uid)
                else:
                    observe(change.object, self._clock.now())
                    if listed is not None:
                        listed.add(change.object.metadata.uid)
            if listed is not None and reflector.synced.is_set():
                for uid in known.keys() - listed:
                    forget(uid)
                listed = None

    async def _follow_nodes(self) -> None:
        async for batch in self._followed.batches():
            for change in batch:
                if isinstance(change, Deleted):
                    self._nodes.pop(change.name, None)
                else:
                    said = change.object.metadata.annotations
                    ours = {key: value for key, value in said.items() if key.startswith(PREFIX)}
                    self._nodes[change.object.metadata.name] = ours


def changes(written: Mapping[str, str], rewards: Mapping[str, float]) -> dict[str, str | None]:
    """The annotations to write so that a node says its rewards; None removes one."""
    wanted = {PREFIX + group: value for group, value in rewards.items()}
    patch: dict[str, str | None] = {key: None for key in written if key not in wanted}
    for key, value in wanted.items():
        if key not in written or abs(_number(written[key]) - value) >= TOLERANCE:
            patch[key] = f"{value:.3f}"
    return patch


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
