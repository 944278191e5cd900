"""The gangs of all loaded policies, as the cluster view knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from policyengine.cluster.teams import Team

if TYPE_CHECKING:
    from policyengine.cluster.view import ClusterView
    from policyengine.scheduler.profiles import Lanes


class GangTeams:
    """`cluster.teams.Teams`: a team is a gang of more than one."""

    def __init__(self, lanes: Lanes, view: ClusterView) -> None:
        self._lanes = lanes
        self._view = view

    def of(self, uid: str) -> Team | None:
        """The pod's team; None for a pod that has none."""
        pod = self._view.pods.get(uid)
        lane = None if pod is None else self._lanes.get(pod.scheduler_name)
        gang = None if lane is None else lane.queue.gangs.of(uid)
        return Team(gang.placed, gang.minimum) if gang is not None and gang.minimum > 1 else None

    def placed(self) -> Iterator[str]:
        """UIDs of all pods that have a node and a team."""
        for lane in self._lanes:
            for gang in lane.queue.gangs:
                if gang.minimum > 1:
                    yield from gang.placed
