"""The rewards at work: follow the pods, keep what they teach, and write it to the nodes.

Rules:
1. What a pod taught is saved before it is written to a node: after a restart nothing is counted twice, and nothing of
   what nodes say is lost.
2. A store or a server that fails costs a round, never the loop. It is told once, and again only after a round without
   it; of several nodes that cannot be written one is named. One that is gone meanwhile is no problem.
3. An annotation is written where its value changed by `TOLERANCE`; one that is forgotten is removed. Only annotations
   under our prefix, and the node's own, are touched.
4. A state that cannot be read is told once, and not written over: what is learnt begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import NODES, Kind
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.stores import Store, StoreError
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Deleted
from policyengine.server.rewards.book import FAILED, Book, Learning, WatchedEvent, WatchedPod, dump, load

logger = logging.getLogger(__name__)

KEY = "rewards.json"
"""The key of the ConfigMap that holds the state."""
PREFIX = "rewards.policyengine.io/"
"""Before the name of a group that all namespaces share; the namespace and a dot before it, else."""
OF_NODE = "policyengine.io/reward"
"""The annotation of the node's own reward."""
TOLERANCE = 0.01

PODS = Kind("Pod", "pods", WatchedPod)
"""Finished ones too: how they ended is what is to be learnt."""
EVENTS = Kind(
    "Event", "events", WatchedEvent, "/apis/events.k8s.io/v1", field_selector=f"reason={FAILED}", is_optional=True
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How is learnt, and when, in seconds."""

    learning: Learning = field(default_factory=Learning)
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
        self._book = Book(settings.learning)
        self._saved = ""
        self._may_save = True
        self._told: set[str] = set()
        self._problems: set[str] = set()
        self._nodes: dict[str, Mapping[str, str]] = {}
        """Node -> our annotations, as last seen or written."""
        history = ServerHistory(None, clock)
        self._pods = Reflector(client, PODS, clock, random, history=history, on_problem=on_problem)
        self._followed = Reflector(client, NODES, clock, random, history=history, on_problem=on_problem)
        self._events = Reflector(client, EVENTS, clock, random, history=history, on_problem=on_problem)

    async def run(self, stop: asyncio.Event) -> None:
        """Learn until `stop` is set. Raises `StoreError` where the store cannot be read at the start."""
        text = await self._store.load()
        if text is not None:
            try:
                self._book = load(text, self._settings.learning)
            except ValueError as error:
                self._may_save = False
                self._on_problem(f"what was learnt before cannot be read: {error}; it begins anew, and is not saved")
        book = self._book
        pods = self._follow(self._pods, book.observe, book.gone, book.pods)
        work = (pods, self._follow_nodes(), self._follow_events(), self._rounds())
        tasks = [asyncio.create_task(one) for one in work]
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
        self._book.forget(now)
        rewards = said_of_nodes(self._book)
        try:
            await self._save()
        except StoreError as error:
            self._problem(str(error))
            return
        failed: dict[str, str] = {}
        for node, written in list(self._nodes.items()):
            patch = changes(written, rewards.get(node, {}))
            if patch:
                await self._write(node, patch, failed)
        if failed:
            node = min(failed)
            self._problem(f"node `{node}`{' and others' * (len(failed) > 1)} cannot be annotated: {failed[node]}")

    async def _save(self) -> None:
        text = dump(self._book)
        if text != self._saved and self._may_save:
            await self._store.save(text)
            self._saved = text

    async def _write(self, node: str, patch: Mapping[str, str | None], failed: dict[str, str]) -> None:
        try:
            await self._client.call("PATCH", NODES.path(name=node), {"metadata": {"annotations": patch}})
        except (ApiError, ConnectionFailed) as error:
            if not (isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND):
                failed[node] = str(error)
            return
        kept = {**self._nodes.get(node, {}), **patch}
        self._nodes[node] = {key: value for key, value in kept.items() if value is not None}

    async def _rounds(self) -> None:
        while True:
            await self._clock.sleep(self._settings.interval)
            await self.round()
            self._told, self._problems = self._problems, set()

    def _problem(self, text: str) -> None:
        if text not in self._told and text not in self._problems:
            self._on_problem(text)
        self._problems.add(text)

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
                    ours = {key: value for key, value in said.items() if is_ours(key)}
                    self._nodes[change.object.metadata.name] = ours


def is_ours(key: str) -> bool:
    """Whether an annotation is one of a reward."""
    return key == OF_NODE or f"{key.partition('/')[0]}/".endswith((f".{PREFIX}",)) or key.startswith(PREFIX)


def said_of_nodes(book: Book) -> dict[str, dict[str, float]]:
    """Node -> annotation -> reward: of each group there, and the node's own."""
    found = {node: {OF_NODE: reward.value} for node, reward in book.nodes.items()}
    for (group, node), reward in book.pairs.items():
        namespace, slash, name = group.rpartition("/")
        found.setdefault(node, {})[f"{namespace}.{PREFIX}{name}" if slash else PREFIX + name] = reward.value
    return found


def changes(written: Mapping[str, str], wanted: Mapping[str, float]) -> dict[str, str | None]:
    """The annotations to write so that a node says what is wanted; None removes one."""
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
