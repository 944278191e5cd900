"""What a policy is judged on: a recording, or a scenario with a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.plan.history import History, read
from policyengine.plan.measures import measures
from policyengine.plan.membership import Memberships, Watching
from policyengine.plan.rerun import PastPlay, alone, finished
from policyengine.plan.serving import replaced
from policyengine.trials.play import Play
from policyengine.trials.simulation import Simulation

Look = Callable[[float, dict[str, Any]], bool]
"""Is told (the share of the time that is played, the figures so far), and says whether to play on."""
LOOKS = 4
"""How often a play is looked at."""


class Stopped(Exception):
    """Somebody who looked had enough."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Arrivals, departures and changes of nodes, the same in each play."""

    path: str
    seed: int | None = None
    """Of a scenario; None of a recording."""

    def __str__(self) -> str:
        return Path(self.path).name if self.seed is None else f"{Path(self.path).name} seed {self.seed}"

    def notes(self, plugins: Callable[[], PluginRegistry]) -> list[str]:
        """What of it could not be used, or is not as it was written. Raises as `play`."""
        if self.seed is not None:
            return []
        return [f"{self}: {note}" for note in _history(self.path, plugins).notes]

    def play(self, profile: Profile, plugins: Callable[[], PluginRegistry], look: Look) -> dict[str, Any]:
        """The figures of a play under a policy.

        Raises `Stopped`, `NotServed`, `UnusableRecording`, `ScenarioError`, `OSError`.
        """
        if self.seed is None:
            history = _history(self.path, plugins)
            served = _serving(history, profile)
            watching = Watching(memberships := Memberships((), served))
            play: Play = PastPlay(history, alone(history), served, 0, watching)
            step, length = play.step, history.end - history.start
        else:
            path, registry = Path(self.path), plugins()
            served = replaced(Simulation(path, seed=self.seed, registry=registry).profiles, [profile])
            watching = Watching(memberships := Memberships((), served))
            run = Simulation(path, served, seed=self.seed, registry=registry, watch=watching)
            play, step, length = run.play, run.step, run.scenario.duration or 0.0
        watching.play = play
        looked = 1
        while step():
            if length and length * looked / LOOKS <= play.at < length:
                looked += 1
                so_far = Watching(memberships)
                so_far.play, so_far.members = play, dict(watching.members)
                if not look(play.at / length, measures(finished(play, so_far))):
                    raise Stopped
        return measures(finished(play, watching))


def _serving(history: History, profile: Profile) -> list[Profile]:
    """The policies of the recording with this one; where it has none of its scheduler name, as an imported trace, there
    have to be pods that ask for it."""
    there = list(history.profiles.values())
    asked = {past.pod.spec.scheduler_name for past in history.pods}
    unserved = profile.scheduler_name in asked - {one.scheduler_name for one in there}
    return replaced([*there, profile] if unserved else there, [profile])


@lru_cache(maxsize=64)
def _history(path: str, plugins: Callable[[], PluginRegistry]) -> History:
    """Read once in a process."""
    return read(Path(path), plugins())
