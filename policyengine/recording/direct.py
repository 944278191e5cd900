"""Records a run on virtual time, where writing may take its time: a frame is written when it is full, the rest at the
end."""

from __future__ import annotations

from pathlib import Path

from policyengine.recording.directory import Limits, RecordingDirectory
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder, RecordingCore
from policyengine.recording.redaction import Redaction
from policyengine.scheduler.state import SchedulerState


class DirectRecording:
    """One run, in a directory; to be closed. Every method raises `OSError` where the disk is full."""

    def __init__(self, path: Path, program: str, run: str, redaction: Redaction | None = None) -> None:
        """`program`: the version that writes; `run`: tells it apart; `redaction`: what hides texts. Raises `OSError`,
        `DirectoryInUse`."""
        self._redaction = redaction
        self._directory = RecordingDirectory(path, Limits(file_age=float("inf")))
        self._began = Began(program, run)
        self._recorder: Recorder | None = None

    def recorded(self, state: SchedulerState) -> RecordingCore:
        """What is to be driven in the core's place."""
        if self._redaction is not None:
            state.break_ties_by(self._redaction.hidden)
        self._recorder = Recorder(self._began, state.profiles, self._write, self._redaction, state.break_ties_by)
        return RecordingCore(state, self._recorder)

    def close(self) -> None:
        """Write what is left."""
        try:
            self._write()
        finally:
            self._directory.close()

    def _write(self) -> None:
        if self._recorder is None:
            return
        while entries := self._recorder.take():
            self._directory.write(entries, 0.0)
        if self._directory.is_due(0.0):
            self._directory.end_file()
            self._recorder.begin_file()
