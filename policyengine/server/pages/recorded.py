"""A recording as a source: any moment of it, as it was, and as it would have been under another policy;
and pictures of all of it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.plan.history import read
from policyengine.plan.rerun import PastPlay, alone
from policyengine.recording.replay import Replay, Step
from policyengine.recording.segment import UnusableRecording
from policyengine.server.pages.source import Moment, NotShown, Source
from policyengine.trials.scenario import ScenarioError
from policyengine.trials.trial import TrialTooLong


class _Played(Source):
    """Moments of something that is played: one after the other. The next goes on from the one before where it is
    later, and begins anew where it is not."""

    span: tuple[float, float]

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def moment(self, at: float | None = None) -> AsyncIterator[Moment]:
        """As it was once everything up to `at` had come; the last moment without one."""
        first, last = self.span
        async with self._one_at_a_time:
            try:
                yield await asyncio.to_thread(self._play, last if at is None else min(max(at, first), last))
            except (UnusableRecording, OSError, ScenarioError, TrialTooLong) as error:
                raise NotShown(500, f"the recording cannot be played up to there: {error}") from None

    @abstractmethod
    def _play(self, at: float) -> Moment:
        """The moment, once everything up to `at` was played."""


class RecordedSource(_Played):
    """As it was: played as `policyengine replay --at` does."""

    def __init__(self, path: Path, registry: PluginRegistry) -> None:
        """Reads all of it once, without playing it. Raises `UnusableRecording`, `OSError`."""
        super().__init__(f"recording {path.name}")
        self._path = path
        self._registry = registry
        self._replay: Replay | None = None
        self._steps: Iterator[Step] = iter(())
        self._played = 0
        """Messages that were played."""
        replay = Replay(path, plays=False, registry=registry)
        self._times = array("d")
        """Of the messages, in order; never going back."""
        for step in replay.steps():
            if step.number:
                self._times.append(max(step.now, self._times[-1] if self._times else 0.0))
        if not self._times:
            raise UnusableRecording(f"{path}: it holds no moment that could be shown")
        self.span = self._times[0], self._times[-1]
        self._notes = tuple(f"the recording is not whole: {note}" for note in replay.notes)
        pods = read(path, registry).pods
        times = [(one.came, one.bound, one.deleted if one.finished is None else one.finished) for one in pods]
        self._charts = charts(times, *self.span)

    def _play(self, at: float) -> Moment:
        wanted = bisect_right(self._times, at)
        if self._replay is None or wanted < self._played:
            self._replay = Replay(self._path, registry=self._registry)
            self._steps, self._played = self._replay.steps(), 0
        while self._played < wanted and next(self._steps, None) is not None:
            self._played += 1
        notes = (*self._notes, *_said(self._replay))
        return Moment(self._replay.state, at, self._path.name, notes=notes, charts=self._charts)


def _said(replay: Replay) -> Iterator[str]:
    if replay.difference is not None:
        yield "this version of policyengine decides otherwise than was recorded; what comes later is not shown"
    if replay.began is not None and replay.began.watched_only:
        yield "a cluster was watched, whoever schedules it: nothing was decided here"
    if replay.began is not None and replay.began.redacted:
        yield "names and texts were hidden when this was recorded"


class ReplannedSource(_Played):
    """As it would have been under other policies: played as `policyengine plan` does."""

    def __init__(self, path: Path, registry: PluginRegistry, profiles: Sequence[Profile]) -> None:
        """Reads all of it. Raises `UnusableRecording`, `OSError`."""
        super().__init__(f"{path.name} under {', '.join(f'policy {one.name}' for one in profiles)}")
        self._history = read(path, registry)
        served = {one.scheduler_name for one in profiles}
        self._profiles = [*profiles, *(one for name, one in self._history.profiles.items() if name not in served)]
        self.span = self._history.start, self._history.end
        others = sorted(served - self._history.profiles.keys())
        self._notes = (
            *self._history.notes,
            "played again on virtual time: what came, came as it did; what was decided, was decided anew",
            *([f"nobody served {', '.join(others)} when this was recorded: name what did"] if others else []),
        )
        self._past: PastPlay | None = None
        self._at = 0.0

    def _play(self, at: float) -> Moment:
        if self._past is None or at < self._at:
            self._past = PastPlay(self._history, alone(self._history), self._profiles, 0)
        self._at = at
        self._past.play_to(at - self._history.start)
        pods, start = self._past.ledger.pods.values(), self._history.start
        times = [(start + one.created, _since(start, one.bound), _since(start, one.ended)) for one in pods]
        drawn = charts(times, *self.span)
        return Moment(self._past.trial.state, at, self.title, notes=self._notes, charts=drawn)


Times = tuple[float, float | None, float | None]
"""When a pod came, was bound, and was gone; None where it was not."""
STRETCHES: Final = 150
"""Of equal length, into which the time is cut."""


def _since(start: float, seconds: float | None) -> float | None:
    return None if seconds is None else start + seconds


def charts(told: Sequence[Times], start: float, end: float) -> list[dict[str, Any]]:
    """What `charts.js` draws: pods, and seconds, at the end of each stretch or in it. Times are since the epoch."""
    edges = np.linspace(start, max(end, start + 1e-3), STRETCHES + 1)
    came = np.sort([one[0] for one in told])
    left = np.sort([at for _, bound, gone in told if (at := gone if bound is None else bound) is not None])
    placed = sorted((bound, bound - came) for came, bound, _ in told if bound is not None and bound > came)
    bound, waited = np.array(placed, np.float64).reshape(-1, 2).T
    waiting = np.searchsorted(came, edges, "right") - np.searchsorted(left, edges, "right")
    cuts = np.searchsorted(bound, edges, "right")
    longest = [float(waited[a:b].max()) if b > a else 0.0 for a, b in pairwise(cuts)]
    shared = {"clock": True, "at": [round(float(at), 3) for at in edges]}
    each = f"bound, in each {edges[1] - edges[0]:.3g} s"
    return [
        {
            "title": "Pods over the recording",
            "lines": [
                {"name": "waiting", "values": waiting.tolist(), "variable": "--s6"},
                {"name": each, "values": [0, *np.diff(cuts).tolist()], "variable": "--s0", "dash": [6, 3]},
            ],
            **shared,
        },
        {
            "title": "The longest that a pod had waited which was bound then",
            "unit": " s",
            "lines": [{"name": "waited", "values": [0, *(round(one, 3) for one in longest)], "variable": "--s1"}],
            **shared,
        },
    ]
