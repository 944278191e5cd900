"""Keeps what `history` learnt where it outlives the process.

Rules:
1. What was saved is read before the first pod is, so that no pod counts twice.
2. It is written every `PERIOD` where it changed, by the leader alone, and once more at the end.
3. What cannot be read is not written over: one message says so, and decisions go by the pods there are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from policyengine.clock import Clock
from policyengine.cluster.demand_history import VERSION, DemandHistory, SavedHistory
from policyengine.kube.http.client import Client
from policyengine.kube.stores import ConfigMapStore, Store, StoreError

logger = logging.getLogger(__name__)

KEY = "history.json"
"""The key of a ConfigMap that holds it."""
PERIOD = 10.0
"""Seconds between two writings."""
CLOCKS_APART = 3600.0
"""Seconds by which the clocks of an API server and a scheduler may differ."""


class DemandMemory:
    """One store of one scheduler or extender."""

    def __init__(
        self,
        store: Store,
        history: DemandHistory,
        clock: Clock,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._history = store, history
        self._clock, self._leads = clock, leads
        self._written: str | None = None
        """What the store holds; None while that is not known."""
        self._told = ""

    async def load(self) -> SavedHistory | None:
        """What was saved; None where nothing was, or nothing that can be read."""
        try:
            text = await self._store.load()
            saved = SavedHistory() if text is None else decoded(text, self._clock.now())
        except (StoreError, ValueError) as error:
            self._tell(f"what `history` learnt before cannot be read: {error}; it begins anew, and is not saved")
            return None
        self._written = text or ""
        return saved

    async def run(self) -> None:
        """Write what is learnt until cancelled."""
        while True:
            await self._clock.sleep(PERIOD)
            await self.save()

    async def save(self) -> None:
        """Write what is learnt, where it is another."""
        if self._written is None or not self._leads():
            return
        saved = self._history.saved()
        text = msgspec.json.encode(saved, order="sorted").decode()
        if text == self._written or not (saved.groups or self._written):
            return
        try:
            await self._store.save(text)
        except StoreError as error:
            self._tell(f"what `history` learnt cannot be saved: {error}")
            return
        self._written, self._told = text, ""

    def _tell(self, problem: str) -> None:
        if problem != self._told:
            logger.warning(problem)
        self._told = problem


def decoded(text: str, now: float) -> SavedHistory:
    """Raises ValueError for what is no history, or one of another version or of a time after `now`."""
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
        if version != VERSION:
            raise ValueError(f"it is of version {version}, and this policyengine reads version {VERSION}")
        saved = msgspec.json.decode(text, type=SavedHistory)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError(f"it is no history: {error}") from None
    if saved.until > now + CLOCKS_APART:
        raise ValueError("it ends in the future, so that no pod would be added to it")
    return saved


class _Versioned(msgspec.Struct):
    version: int


def history_store(client: Client, configmap: str) -> Store | None:
    """The ConfigMap `NAMESPACE/NAME`; None where none is given."""
    namespace, _, name = configmap.partition("/")
    return ConfigMapStore(client, namespace, name, KEY) if configmap else None
