"""Looks on while a core runs, and has what it is told and what it asks for written.

    recorder = Recorder(Began("1.0", "a run"), profiles)
    core = RecordingCore(state, recorder)       # driven in the core's place
    …
    frame = recorder.take()                     # what came since; to be written behind what was taken before

Encoding happens at once, in the caller's thread: what a message holds may change afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, cast

from msgspec.structs import replace

from policyengine.framework.profile import Profile
from policyengine.recording.directory import Limits, RecordingDirectory
from policyengine.recording.encoding import ABOUT, Began, Encoder
from policyengine.recording.redaction import Hide, Redaction
from policyengine.scheduler import messages
from policyengine.scheduler.actions import Action
from policyengine.scheduler.state import SchedulerState

FRAME: Final = 4 << 20
"""Bytes of entries that make a frame, one entry more or less."""
POLICIES_COME: Final = 30.0
"""Seconds for which a redacted recording waits for the first policies, whose words it does not hide."""


class Recorder:
    """The entries that are not written yet, and what a file has to begin with: every object as it was last seen, as
    bytes (a pod: 0.7 KB)."""

    def __init__(
        self,
        began: Began,
        profiles: Iterable[Profile] = (),
        full: Callable[[], object] = lambda: None,
        redaction: Redaction | None = None,
        break_ties_by: Callable[[Hide], object] = lambda hide: None,
    ) -> None:
        """`profiles`: those that serve from the start. `full` is called when a frame's worth has come, or more.
        `redaction`: what hides texts. `break_ties_by`: tells the core that is recorded how it does."""
        self.size = 0
        """Bytes that are not written yet."""
        self.stopped = False
        """Whether nothing is kept any more."""
        self._full = full
        self._redaction = redaction
        self._break_ties_by = break_ties_by
        self._early: list[tuple[float, messages.Message, Sequence[Action]]] | None = None if redaction is None else []
        """What came before the words of the first policies were known."""
        self._encoder = Encoder(redaction)
        self._entries: list[bytes] = []
        self._objects: dict[tuple[str, str, str], tuple[str, str, bytes]] = {}
        """(kind, namespace, name) -> (UID, name of the message, the message as bytes)."""
        self._policies: dict[
            tuple[type[messages.Message], str], messages.ProfileReplaced | messages.CandidateLoaded
        ] = {}
        """(type of the message, scheduler name) -> the message."""
        self._is_synced = False
        self._began = replace(began, redacted=redaction is not None)
        self._now = began.at
        if redaction is not None:
            break_ties_by(redaction.hidden)
        for profile in profiles:
            self._show(profile)
            self._keep(messages.ProfileReplaced(profile), b"")
        self._begin(self._began)

    def told(self, now: float, message: messages.Message, actions: Sequence[Action] = ()) -> None:
        """The core was told something, and asked for something."""
        if self._early is None:
            self._tell(now, message, actions)
            return
        self._early.append((now, message, actions))
        if isinstance(message, messages.ProfileReplaced | messages.CandidateLoaded):
            self._show(message.profile)
        if isinstance(message, messages.CacheSynced) or now - self._early[0][0] > POLICIES_COME:
            self.settle()

    def settle(self) -> None:
        """Wait for no further policies."""
        early, self._early = self._early or [], None
        for entry in early:
            self._tell(*entry)

    def _tell(self, now: float, message: messages.Message, actions: Sequence[Action]) -> None:
        self._now = now
        if type(message) in _LOADED:  # asked for by `isinstance`, a message costs as much as its encoding
            profile = cast(messages.ProfileReplaced | messages.CandidateLoaded, message).profile
            self._show(profile)
            self._introduce(profile)
        written = self._encoder.body(message)
        self._keep(message, written)
        asked = self._encoder.asked(actions) if actions else b""
        self._add(self._encoder.entry(now, message, written, asked))

    def asked(self, uid: str, allowed: bool) -> None:
        """The runner asked whether a binding still stands: the answer depends on no time but the last message's."""
        self.settle()
        self._add(self._encoder.may_bind(uid, allowed))

    @property
    def is_full(self) -> bool:
        """Whether a frame's worth waits."""
        return self.size >= FRAME

    def take(self) -> list[bytes]:
        """The entries of a frame, oldest first; none where none wait. The last of all come with the digest."""
        entries, size = self._entries, self.size
        if not entries:
            return []
        if size > FRAME:
            ends = accumulate(map(len, entries))
            count = next(number for number, end in enumerate(ends, 1) if end >= FRAME)
            entries, self._entries = entries[:count], entries[count:]
            self.size -= sum(map(len, entries))
        else:
            self._entries, self.size = [], 0
        return entries if self._entries else [*entries, self._encoder.digest()]

    def stop(self) -> None:
        """Keep nothing any more."""
        self.stopped = True
        self._entries, self.size = [], 0

    def begin_file(self) -> None:
        """What is known goes into the next frame: it is the first of a file that goes on from another. To be called
        when everything before was taken."""
        self._begin(replace(self._began, continues=True, at=self._now))

    def _begin(self, began: Began) -> None:
        self._add(self._encoder.began(began))
        for message in self._policies.values():
            self._introduce(message.profile)
            self._add(self._encoder.known(type(message).__name__, self._encoder.body(message)))
        for _, name, written in self._objects.values():
            self._add(self._encoder.known(name, written))
        if self._is_synced:
            self._add(self._encoder.known(messages.CacheSynced.__name__, self._encoder.body(messages.CacheSynced())))

    def _show(self, profile: Profile) -> None:
        """Hide the words of a policy no more. Where objects that are there were written without, the recording begins
        anew with them: what was decided before cannot be played up to what comes."""
        if self._redaction is None:
            return
        loaded = profile.loaded_from
        params = (f'"{value}"' for value in loaded.params.values())
        anew = self._redaction.show("\n".join((f'"{profile.scheduler_name}"', *loaded.files.values(), *params)))
        if anew is None:
            return
        self._break_ties_by(self._redaction.hidden)
        changed = False
        for key, (uid, name, written) in self._objects.items():
            shown = anew(written)
            changed = changed or shown is not written
            self._objects[key] = uid, name, shown
        if changed:
            self._began = replace(self._began, run=f"{self._began.run}+")
            self.begin_file()

    def _introduce(self, profile: Profile) -> None:
        if text := self._encoder.policy(profile):
            self._add(text)

    def _add(self, entry: bytes) -> None:
        self._entries.append(entry)
        self.size += len(entry)
        if self.size >= FRAME:
            self._full()

    def _keep(self, message: Any, written: bytes) -> None:
        """What a file would have to begin with."""
        kind = type(message)
        if kind in ABOUT:
            key = ABOUT[kind](message)
            if kind in _SEEN:
                uid = message.pod.metadata.uid if kind is messages.PodObserved else ""
                self._objects[key] = (uid, kind.__name__, written)
            elif not (uid := getattr(message, "uid", "")) or self._objects.get(key, ("",))[0] == uid:
                self._objects.pop(key, None)
        elif kind in _LOADED:
            self._policies[kind, message.profile.scheduler_name] = message
        elif kind in _REMOVED:
            self._policies.pop((_REMOVED[kind], message.scheduler_name), None)
        elif kind in (messages.CacheSynced, messages.CacheLost):
            self._is_synced = kind is messages.CacheSynced


_SEEN: Final = frozenset((messages.PodObserved, messages.NodeObserved, messages.ObjectObserved))
_LOADED: Final = frozenset((messages.ProfileReplaced, messages.CandidateLoaded))
_REMOVED: Final[dict[type[messages.Message], type[messages.Message]]] = {
    messages.ProfileRemoved: messages.ProfileReplaced,
    messages.CandidateRemoved: messages.CandidateLoaded,
}


class RecordingCore:
    """Drives a core, and has everything recorded."""

    def __init__(self, core: messages.DrivenCore, recorder: Recorder) -> None:
        self._core = core
        self._recorder = recorder
        self.next_wakeup = core.next_wakeup

    def handle(self, message: messages.Message, now: float) -> list[Action]:
        """As `SchedulerState.handle`. What the core fails at is recorded too."""
        actions: list[Action] = []
        try:
            actions = self._core.handle(message, now)
        finally:
            if not self._recorder.stopped:
                self._recorder.told(now, message, actions)
        return actions

    @property
    def ready(self) -> bool:
        """As `SchedulerState.ready`."""
        return self._core.ready

    @property
    def has_decided(self) -> bool:
        """As `SchedulerState.has_decided`."""
        return self._core.has_decided

    def may_bind(self, uid: str) -> bool:
        """As `SchedulerState.may_bind`."""
        allowed = self._core.may_bind(uid)
        if not self._recorder.stopped:
            self._recorder.asked(uid, allowed)
        return allowed


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
