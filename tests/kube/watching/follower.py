"""A reflector followed on a scripted server."""

import asyncio
import random
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS, Kind
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.http.client import Client
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import Deleted, Observed
from tests.kube.scripted_server import ScriptedServer
from tests.kube.virtual_time import VirtualClock, run


class Follower:
    """A reflector on a scripted server, and the store its changes make."""

    def __init__(self, server: ScriptedServer, resource: Kind[ConfigMap] = CONFIG_MAPS) -> None:
        self.server = server
        self.resource = resource
        self.problems: list[str] = []
        self.seen: list[str] = []
        self.forms: list[type] = []
        self.store: dict[str, str] = {}
        self.reflector: Reflector[ConfigMap]

    async def follow(self, seconds: float) -> None:
        self.reflector = Reflector(
            Client(self.server), self.resource, VirtualClock(), random.Random(1), on_problem=self.problems.append
        )
        try:
            async with asyncio.timeout(seconds):
                async for change in self.reflector.changes():
                    self._take(change)
        except TimeoutError:
            pass

    def _take(self, change: Any) -> None:
        if isinstance(change, Deleted):
            self.seen.append(f"-{change.name}")
            del self.store[change.name]
        else:
            assert isinstance(change, Observed)
            self.forms.append(type(change.object))
            name, version = change.object.metadata.name, change.object.data["v"]
            self.seen.append(f"{name}@{version}")
            self.store[name] = version


def follow(*script: Any, seconds: float = 1000.0, resource: Kind[ConfigMap] = CONFIG_MAPS) -> Follower:
    follower = Follower(ScriptedServer(*script), resource)
    run(follower.follow(seconds))
    return follower


def watches(follower: Follower) -> list[str]:
    return [one.query["resourceVersion"] for one in follower.server.asked if "watch" in one.query]


def lists(follower: Follower) -> int:
    return sum("watch" not in one.query for one in follower.server.asked)
