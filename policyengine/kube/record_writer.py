"""Writes a recording while a scheduler runs, beside it: what came is compressed and written in a thread.

Where the disk is full or gone, or falls far behind, the recording ends with one warning, and scheduling goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

from policyengine.clock import Clock
from policyengine.cluster.kinds import BY_KIND, FINISHED_PODS
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.runner import Onlooker, Runner
from policyengine.recording.directory import DirectoryInUse, Limits, RecordingDirectory
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder, RecordingCore
from policyengine.recording.redaction import Redaction
from policyengine.scheduler.messages import CacheSynced, DrivenCore, Message
from policyengine.scheduler.state import SchedulerState
from policyengine.version import __version__

logger = logging.getLogger(__name__)

PERIOD = 1.0
"""Seconds between two frames: what a process that is killed loses."""
MOST_WAITING = 256 << 20
"""Bytes that may wait for the disk."""


class RecordingUnusable(Exception):
    """The directory cannot be written to."""


class RecordWriter:
    """One run's recording in a directory."""

    def __init__(
        self, path: Path, limits: Limits, clock: Clock, random: Random, redaction: Redaction | None = None
    ) -> None:
        """`redaction`: what hides texts. Raises `RecordingUnusable`."""
        self._path = path
        self._redaction = redaction
        self._clock = clock
        self._run = f"{random.getrandbits(64):016x}"
        self._full = asyncio.Event()
        self._ending = False
        self.ended = asyncio.Event()
        """Set where nothing can be recorded any more."""
        self._recorder: Recorder | None = None
        try:
            self._directory = RecordingDirectory(path, limits)
        except (OSError, DirectoryInUse) as error:
            raise RecordingUnusable(f"cannot record into {path}: {error}") from error

    def recorded(self, state: SchedulerState, core: DrivenCore | None = None) -> RecordingCore:
        """What is to be driven in the core's place, so that all of it is recorded. `core`: who looks on already."""
        began = Began(__version__, self._run, extenders=state.extenders, verifies_bindings=state.verifies_bindings)
        if self._redaction is not None:
            state.break_ties_by(self._redaction.hidden)
        self._recorder = Recorder(began, state.profiles, self._full.set, self._redaction, state.break_ties_by)
        return RecordingCore(core or state, self._recorder)

    def watched(self, onlooker: Onlooker) -> RecordingCore:
        """The same where nothing is decided."""
        began = Began(__version__, self._run, watched_only=True)
        self._recorder = Recorder(began, (), self._full.set, self._redaction)
        return RecordingCore(onlooker, self._recorder)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write once a second, and when much has come, while the block runs, and what is left behind it."""
        writing = asyncio.create_task(self._write_again_and_again())
        try:
            yield
        finally:
            # Nothing is cut off: a frame that was taken and not written would be missing.
            self._ending = True
            self._full.set()
            await writing
            if self._recorder is not None:
                self._recorder.settle()
            await self.write()
            self._directory.close()

    async def _write_again_and_again(self) -> None:
        while not self._ending:
            with suppress(TimeoutError):
                async with asyncio.timeout(PERIOD):
                    await self._full.wait()
            self._full.clear()
            await self.write()

    async def write(self) -> None:
        """Write what came. Where that cannot be, the recording ends."""
        recorder = self._recorder
        if recorder is None or recorder.stopped:
            return
        now = self._clock.monotonic()
        if recorder.size > MOST_WAITING:
            self._end(recorder, f"{recorder.size >> 20} MiB wait for the disk")
            return
        frames = list(iter(recorder.take, []))
        is_due = self._directory.is_due(now)
        if is_due:
            recorder.begin_file()  # at once: what comes from now on stands behind it
        try:
            await asyncio.to_thread(self._write_frames, frames, now, is_due)
        except OSError as error:
            self._end(recorder, str(error))

    def _write_frames(self, frames: Sequence[Sequence[bytes]], now: float, is_due: bool) -> None:
        for entries in frames:
            self._directory.write(entries, now)
        if is_due:
            self._directory.end_file()

    def _end(self, recorder: Recorder, why: str) -> None:
        recorder.stop()
        self.ended.set()
        logger.warning("the recording in %s ends here, all else goes on: %s", self._path, why)


async def watch_cluster(
    client: Client, clock: Clock, random: Random, writer: RecordWriter, stop: asyncio.Event
) -> bool:
    """Record what happens in a cluster until `stop` is set. Every kind that a policy may read is listed and watched;
    whether all of them were listed at some time."""
    reads_everything = Profile("watched", "", "", kinds=(*BY_KIND, FINISHED_PODS.kind))
    has_listed = False

    def note(message: Message, now: float) -> None:
        nonlocal has_listed
        has_listed = has_listed or isinstance(message, CacheSynced)

    runner = Runner(writer.watched(Onlooker(note)), client, clock, random, profiles=[reads_everything])
    async with writer.running():
        await runner.run(stop)
    return has_listed
