"""Policies from ConfigMaps: watched, compiled off the hot path, swapped between two cycles, and reported on.

A ConfigMap labelled `policyengine.io/policy=true` carries policies, libraries and overlays under keys that end in
`.policy`, and values for their params under `params.yaml`. It stands or falls as a whole: what became of it is written
into its annotation `policyengine.io/status`. Only the newest version of each ConfigMap is compiled,
one at a time, so that a flapping one costs no more than its compiling.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from policyengine.clock import Clock
from policyengine.cluster.objects import ConfigMap
from policyengine.framework.profile import Profile
from policyengine.kube.client import ApiError, Client
from policyengine.kube.outbox import Outbox
from policyengine.kube.params_file import PARAMS_FILE
from policyengine.kube.reflector import Observed, Reflector
from policyengine.kube.resources import CONFIG_MAPS
from policyengine.kube.rivals import Candidate, Problem, Rivals, Standing, changes
from policyengine.scheduler.messages import Message, ProfileRemoved, ProfileReplaced

logger = logging.getLogger(__name__)

LABEL_SELECTOR = "policyengine.io/policy=true"
STATUS = "policyengine.io/status"
MODE = "policyengine.io/mode"
DEFAULT_NAMESPACE = "kube-system"
POLICY_SUFFIX = ".policy"


@dataclass(frozen=True)
class Compiled:
    """What the texts of a ConfigMap compiled to: profiles, or the first error."""

    profiles: tuple[Profile, ...] = ()
    problem: Problem | None = None


Compile = Callable[[Mapping[str, str]], Awaitable[Compiled]]
"""The texts by their keys -> what they compiled to together. Never raises for what the texts say."""


@dataclass(frozen=True)
class _Report:
    """An annotation to write."""

    namespace: str
    name: str
    status: Mapping[str, object] = field(hash=False)


class PolicyReloader:
    """Watches policies and hands profiles to the core."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        compile_files: Compile,
        put: Callable[[Message], None],
        *,
        files: Iterable[Profile] = (),
        namespace: str = DEFAULT_NAMESPACE,
        label_selector: str = LABEL_SELECTOR,
    ) -> None:
        self.settled = asyncio.Event()
        """Set once every policy of the first list was compiled and handed over."""
        self.rejected = 0
        """Versions of ConfigMaps that were refused so far."""
        self._client = client
        self._compile = compile_files
        self._put = put
        self._rivals = Rivals(files)
        self._serving, _ = self._rivals.decide()
        self._seen: dict[str, ConfigMap] = {}
        """`namespace/name` -> the version looked at last."""
        self._waiting: dict[str, ConfigMap | None] = {}
        """What arrived and was not looked at yet; None for a deletion."""
        self._arrived = asyncio.Event()
        self._reflector = Reflector(
            client,
            CONFIG_MAPS,
            clock,
            random,
            namespace=namespace,
            label_selector=label_selector,
            on_problem=logger.warning,
        )
        self._reports: Outbox[_Report] = Outbox(
            "policy status", self._write, clock, random, workers=2, on_problem=logger.warning
        )

    async def run(self) -> None:
        """Watch, compile and report until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._after_list())
            group.create_task(self._reports.run())
            group.create_task(self._work())

    async def flush(self, seconds: float) -> None:
        """Write the annotations that still wait."""
        await self._reports.flush(seconds)

    async def _follow(self) -> None:
        async for change in self._reflector.changes():
            if isinstance(change, Observed):
                self._waiting[change.object.metadata.key] = change.object
            else:
                self._waiting[f"{change.namespace}/{change.name}"] = None
            self._arrived.set()

    async def _after_list(self) -> None:
        await self._reflector.synced.wait()
        self._arrived.set()

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                # Together, so that at the start no younger ConfigMap serves until the older one was compiled.
                batch, self._waiting = self._waiting, {}
                for key, config_map in sorted(batch.items()):
                    await self._take(key, config_map)
                self._apply()
            if self._reflector.synced.is_set():
                self.settled.set()

    async def _take(self, key: str, config_map: ConfigMap | None) -> None:
        """Compile what is new in one ConfigMap."""
        if config_map is None:
            self._seen.pop(key, None)
            self._rivals.remove(key)
            return
        before = self._seen.get(key)
        self._seen[key] = config_map
        if before is None or _content(before) != _content(config_map):
            self._rivals.put(await self._candidate(config_map))

    async def _candidate(self, config_map: ConfigMap) -> Candidate:
        meta = config_map.metadata
        compiled = await self._compile_all(config_map)
        return Candidate(meta.namespace, meta.name, meta.creation_timestamp or "", compiled.profiles, compiled.problem)

    async def _compile_all(self, config_map: ConfigMap) -> Compiled:
        """All keys together; the first error rejects them all."""
        mode = config_map.metadata.annotations.get(MODE)
        if mode is not None:
            return Compiled(problem=Problem(f"this version does not know the mode `{mode}`; remove the annotation"))
        texts = _texts(config_map)
        if not any(key.endswith(POLICY_SUFFIX) for key in texts):
            return Compiled(problem=Problem(f"the ConfigMap has no key that ends in `{POLICY_SUFFIX}`"))
        compiled = await self._compile(texts)
        if compiled.problem is not None:
            return compiled
        if not compiled.profiles:
            return Compiled(problem=Problem("the ConfigMap has no policy"))
        rivals = _rivals_in(compiled.profiles)
        return compiled if rivals is None else Compiled(problem=rivals)

    def _apply(self) -> None:
        """Hand over what changed, and report on every ConfigMap whose standing its annotation does not tell."""
        serving, standings = self._rivals.decide()
        replaced, removed = changes(self._serving, serving)
        self._serving = serving
        for profile in replaced:
            about = {"policy": profile.name, "hash": profile.policy_hash[:12]}
            logger.info("`%s` is served by another policy", profile.scheduler_name, extra=about)
            self._put(ProfileReplaced(profile))
        for name in removed:
            logger.warning("no policy serves `%s` any more; its pods wait", name)
            self._put(ProfileRemoved(name))
        for key, standing in standings.items():
            self._report(self._seen[key], standing)

    def _report(self, config_map: ConfigMap, standing: Standing) -> None:
        status = status_of(config_map, standing)
        if _annotated(config_map) == status:
            return
        meta = config_map.metadata
        if standing.problem is not None:
            self.rejected += 1
            place = f" (line {standing.problem.line})" if standing.problem.line else ""
            logger.warning("ConfigMap `%s` is rejected: %s%s", meta.key, standing.problem.message, place)
        self._reports.put(meta.key, _Report(meta.namespace, meta.name, status))

    async def _write(self, report: _Report) -> None:
        text = json.dumps(report.status)
        patch = {"metadata": {"annotations": {STATUS: text}}}
        try:
            await self._client.patch_config_map(report.namespace, report.name, patch)
        except ApiError as error:
            if error.status != 404:
                raise


def status_of(config_map: ConfigMap, standing: Standing) -> dict[str, object]:
    """The annotation `policyengine.io/status`; `dataHash` says which version of the data it speaks of."""
    problem = standing.problem or Problem("")
    return {
        "state": "accepted" if standing.accepted else "rejected",
        "hash": standing.policy_hash,
        "dataHash": hashlib.sha256(_canonical(_texts(config_map))).hexdigest(),
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }


def _rivals_in(profiles: Iterable[Profile]) -> Problem | None:
    """Why the profiles of one ConfigMap cannot serve together."""
    first: dict[str, Profile] = {}
    for profile in profiles:
        rival = first.setdefault(profile.scheduler_name, profile)
        if rival is not profile:
            names = f"`{rival.name}` and `{profile.name}`"
            return Problem(f"scheduler `{profile.scheduler_name}` is served by two policies: {names}")
    return None


def _texts(config_map: ConfigMap) -> dict[str, str]:
    """What a ConfigMap says of policies, by its keys."""
    return {
        key: text for key, text in sorted(config_map.data.items()) if key.endswith(POLICY_SUFFIX) or key == PARAMS_FILE
    }


def _content(config_map: ConfigMap) -> tuple[object, ...]:
    """What a new version must differ in to be compiled again."""
    meta = config_map.metadata
    return meta.uid, meta.annotations.get(MODE), _texts(config_map)


def _canonical(texts: Mapping[str, str]) -> bytes:
    return json.dumps(texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _annotated(config_map: ConfigMap) -> object:
    try:
        return json.loads(config_map.metadata.annotations.get(STATUS, ""))
    except ValueError:
        return None
