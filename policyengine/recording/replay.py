"""Plays a recording: a core is told what another was told, at the same times, and asked whether it wants the same.

    played = Replay(Path("recording"))
    for step in played.steps(): …
    played.difference is None and not played.notes

Files of one run follow each other. Where the first of them are gone, or one is damaged, the core is made from what the
next file says was known: what the lost core remembered beside objects (attempts, backoffs, what it had assumed) is not
there, as after a restart, and the actions are not compared from then on (`Replay.exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from policyengine import regular_file
from policyengine.compiler.assemble import PluginRegistry
from policyengine.plugins.registry import IN_TREE
from policyengine.recording import encoding
from policyengine.recording.directory import files
from policyengine.recording.redaction import without_texts
from policyengine.recording.segment import SegmentReader, UnusableRecording
from policyengine.scheduler.actions import Action
from policyengine.scheduler.messages import Message
from policyengine.scheduler.state import SchedulerState


class Step(NamedTuple):
    """What the core was told."""

    number: int
    """Of the entry, in the recording, from 1."""
    now: float
    message: Message
    actions: list[Action]
    """What this core asks for."""


class Difference(NamedTuple):
    """The first at which this core does not ask for what was recorded."""

    step: Step | None
    recorded: list[tuple[str, dict[str, Any]]]
    """Actions as they were written: their names and fields."""
    note: str = ""
    """What differs where that is no action."""


class Replay:
    """One playing of a recording."""

    def __init__(
        self,
        path: Path,
        plays: bool = True,
        registry: PluginRegistry = IN_TREE,
        listen: Callable[[float, encoding.Entry, Message | None], object] = lambda now, entry, message: None,
        core: type[SchedulerState] = SchedulerState,
    ) -> None:
        """
        Arguments:
            plays: without it no core is told anything: the messages are only read, those that were known when a file
                began too.
            registry: the plugins that policies may name.
            listen: is told (the time, the entry, its message if it has one) of all that the core of a run is about to
                be told, and of the run's beginning.
            core: what is told.

        Raises:
            UnusableRecording: there is none.
        """
        self.state = core()
        """The core of the run that is played."""
        self.began: encoding.Began | None = None
        """What the file that is played says of itself."""
        self.exact = True
        """Whether every action was compared so far."""
        self.difference: Difference | None = None
        self.notes: list[str] = []
        """What of the recording could not be used, in order."""
        self.now = 0.0
        """The time of the last message."""
        self.messages = 0
        """How many were played."""
        self.runs = 0
        """How many began; one more where a part of one is lost, and what comes behind it is told anew."""
        self._files = files(path)
        for one in self._files:
            if one.exists() and not regular_file.is_file(one):
                raise UnusableRecording(f"{one} is no regular file")
        if not self._files:
            raise UnusableRecording(f"{path}: the directory holds no recording")
        self._plays = plays
        self._core = core
        self._listen = listen
        self._decoder = encoding.Decoder(registry)
        self._played = encoding.Encoder()
        self._over = False
        self._cut: list[str] = []
        self._whole = False
        """Whether everything was played that the core of the run was told."""
        self._before: tuple[SchedulerState, float, encoding.Encoder] | None = None
        """What the run before came to, as long as nothing has happened in this one."""

    @property
    def digest(self) -> str:
        """Of all that this core asked for, in hex; as the recording has it of the core that was recorded."""
        return self._played.hexdigest()

    @property
    def cut_only(self) -> bool:
        """Whether the recording lacks no more than what a process that was killed had not written."""
        return self.notes == self._cut

    def steps(self, until: float | None = None) -> Iterator[Step]:
        """Everything the cores are told, one message at a time, up to a moment. Ends at the first difference.

        Raises `UnusableRecording` where nothing can be read at all, `OSError` where a file cannot be opened.
        """
        for path in self._files:
            try:
                with path.open("rb") as file:
                    reader = SegmentReader(file, path.name)
                    for entries in reader.frames():
                        yield from self._frame(entries, inf if until is None else until)
                        if self._over:
                            return
                    if reader.cut:
                        self._cut.append(f"{path.name}: the last frame was not written whole, and is left out")
                        self._lose(self._cut[-1])
            except (UnusableRecording, encoding.UnreadableEntry, msgspec.MsgspecError, UnicodeDecodeError) as error:
                self._lose(str(error) if isinstance(error, UnusableRecording) else f"{path.name}: {error}")
                if self.began is None and path is self._files[-1]:
                    raise UnusableRecording(self.notes[-1]) from error

        if self.began is None:
            raise UnusableRecording(f"{self._files[-1].name}: nothing in it was written whole")
        self._return()

    def play(self, until: float | None = None) -> None:
        """All steps, or those up to a moment. Raises as `steps`."""
        for _ in self.steps(until):
            pass

    def _return(self) -> None:
        """To the run before, where nothing has happened in this one: that is how things were."""
        if self._before is not None:
            self.state, self.now, self._played = self._before

    def _end(self, until: float) -> None:
        self._return()
        self.now, self._over = max(self.now, until), True

    def _lose(self, why: str) -> None:
        self.notes.append(why)
        self._whole = False

    def _frame(self, entries: list[encoding.Entry], until: float) -> Iterator[Step]:
        for entry in entries:
            if self.began is None and entry.name != encoding.BEGAN:
                raise encoding.UnreadableEntry(f"it begins with an entry `{entry.name}`")
            if entry.name == encoding.BEGAN:
                began = msgspec.msgpack.decode(entry.body, type=encoding.Began)
                if began.at > until and self.began is not None:
                    self._end(until)
                    return
                self._begin(began)
                if not self._goes_on:
                    self._listen(self.now, entry, None)
            elif entry.name == encoding.MAY_BIND and self._plays:
                self._listen(self.now, entry, None)
                self._ask(entry)
            elif entry.name == encoding.DIGEST and self._plays:
                digest = msgspec.msgpack.decode(entry.body, type=str)
                if self._compares and digest != self.digest:
                    self.difference = Difference(None, [], f"the digest was {digest}, now it is {self.digest}")
            elif (message := self._decoder.message(entry)) is not None:
                if isinstance(entry.now, float) and entry.now > until:
                    self._end(until)
                elif entry.now != encoding.KNOWN:
                    yield self._tell(entry, message)
                elif not self._goes_on and self._plays:
                    self._listen(self.now, entry, message)
                    self._handle(message)
                elif not self._goes_on:
                    yield Step(0, self.now, message, [])
            if self._over or self.difference is not None:
                self._over = True
                return

    def _begin(self, began: encoding.Began) -> None:
        before, self.began = self.began, began
        self._goes_on = began.continues and self._whole and before is not None and before.run == began.run
        """Whether what this file says was known is known."""
        if not self._goes_on:
            if before is not None and not began.continues and self._before is None:
                self._before = self.state, self.now, self._played
            self.runs += 1
            self.state = self._core((), began.extenders, began.verifies_bindings)
            self.now, self._whole = began.at, True
            self._played = encoding.Encoder(asked=without_texts if began.redacted else bytes)
            self._compares = self._plays and not began.continues and not began.watched_only
            self.exact = self.exact and self._compares

    def _tell(self, entry: encoding.Entry, message: Message) -> Step:
        if isinstance(entry.now, float):
            self.now = entry.now
        self._before = None
        self.messages += 1
        self._listen(self.now, entry, message)
        actions = self._handle(message) if self._plays else []
        step = Step(self.messages, self.now, message, actions)
        asked = self._played.asked(step.actions) if step.actions else b""
        if self._compares and asked != entry.actions:
            recorded = msgspec.msgpack.decode(entry.actions or b"\x90", type=list[tuple[str, dict[str, Any]]])
            self.difference = Difference(step, recorded)
        return step

    def _handle(self, message: Message) -> list[Action]:
        try:
            return self.state.handle(message, self.now)
        except Exception as error:
            # A file that anybody may have written tells the core what no cluster would; that can fail at any line of
            # it, of its plugins and of those of other packages, with anything.
            what = f"message {self.messages:,}, {type(message).__name__}, cannot be played"
            raise encoding.UnreadableEntry(f"{what}: {type(error).__name__}: {error}") from error

    def _ask(self, entry: encoding.Entry) -> None:
        uid, allowed = msgspec.msgpack.decode(entry.body, type=tuple[str, bool])
        answer = self.state.may_bind(uid)
        if self._compares and answer != allowed:
            words = ["no", "yes"]
            note = f"asked whether the binding of {uid} still stands, {words[allowed]} was said, now {words[answer]}"
            self.difference = Difference(None, [], note)
