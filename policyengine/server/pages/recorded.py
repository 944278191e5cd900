"""A recording as a source: any moment of it, played there as `policyengine replay --at` does."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from policyengine.compiler.assemble import PluginRegistry
from policyengine.recording.replay import Replay, Step
from policyengine.recording.segment import UnusableRecording
from policyengine.server.pages.source import Moment, NotShown


class RecordedSource:
    """Every moment between the first of a recording and its last. Moments are shown one after the other; the next goes
    on from the one before where it is later, and begins anew where it is not."""

    is_live = False

    def __init__(self, path: Path, registry: PluginRegistry) -> None:
        """Reads all of it once, without playing it. Raises `UnusableRecording`, `OSError`."""
        self.title = f"recording {path.name}"
        self._path = path
        self._registry = registry
        self._one_at_a_time = asyncio.Lock()
        self._replay: Replay | None = None
        self._steps: Iterator[Step] = iter(())
        self._played = 0
        """Messages that were played."""
        read = Replay(path, plays=False, registry=registry)
        self._times = array("d")
        """Of the messages, in order; never going back."""
        for step in read.steps():
            if step.number:
                self._times.append(max(step.now, self._times[-1] if self._times else 0.0))
        if not self._times:
            raise UnusableRecording(f"{path}: it holds no moment that could be shown")
        self.span: tuple[float, float] = self._times[0], self._times[-1]
        self._notes = tuple(f"of the recording could not be read: {note}" for note in read.notes)

    @asynccontextmanager
    async def moment(self, at: float | None = None) -> AsyncIterator[Moment]:
        """As it was once every message up to `at` had come; the last moment without one."""
        async with self._one_at_a_time:
            try:
                replay = await asyncio.to_thread(self._play, self.span[1] if at is None else at)
            except (UnusableRecording, OSError) as error:
                self._replay = None
                raise NotShown(500, f"the recording cannot be played up to there: {error}") from None
            now = replay.now if at is None else min(max(at, self.span[0]), self.span[1])
            yield Moment(replay.state, now, self._path.name, None, notes=(*self._notes, *self._said(replay)))

    def _play(self, at: float) -> Replay:
        wanted = max(1, bisect_right(self._times, at))
        if self._replay is None or wanted < self._played:
            self._replay = Replay(self._path, registry=self._registry)
            self._steps, self._played = self._replay.steps(), 0
        while self._played < wanted and next(self._steps, None) is not None:
            self._played += 1
        return self._replay

    def _said(self, replay: Replay) -> Iterator[str]:
        if replay.difference is not None:
            yield "this version of policyengine decides otherwise than was recorded, and what comes later is not shown"
        if replay.began is not None and replay.began.watched_only:
            yield "a cluster was watched, whoever schedules it: nothing was decided here"
        if replay.began is not None and replay.began.redacted:
            yield "names and texts were hidden when this was recorded"
