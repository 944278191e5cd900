"""Cuts a recording down to the fewest messages that still show something: its difference, or that a condition holds.

Rules:
1. A difference is still shown where this program asks for the very same at the message where it differed, and before
   that, of what is decided, for what was recorded. What is said (events, conditions, log lines) may change: it counts
   nodes and pods that are left out. Where this program fails at the last message, it is shown where it fails so.
2. A condition is still shown where it is true at the end.
3. First whole objects are left out, with all that was told about them, then single messages; the same recording is cut
   down to the same messages (delta debugging, Zeller and Hildebrandt 2002). A core that fails shows nothing else.

    told = Told.of(path)
    kept = Shrinking(told, told.difference()).fewest()
    told.write(kept, Path("small.recording"), differs=True)
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from policyengine.compiler.assemble import PluginRegistry
from policyengine.language.evaluate import EvaluationError, evaluate
from policyengine.plugins.registry import IN_TREE
from policyengine.recording.encoding import ABOUT, BEGAN, KNOWN, Began, Encoder, Entry
from policyengine.recording.redaction import without_texts
from policyengine.recording.replay import Replay
from policyengine.recording.segment import MAGIC, SegmentWriter
from policyengine.scheduler import messages
from policyengine.scheduler.state import SchedulerState

MOST_MESSAGES: Final = 2_000_000
"""Messages that are played in all, some 40 s of CPU and more; what is left then is as small as was found."""


MOST_OF_A_FRAME: Final = 1_000
"""Lines, and a policy before some of them: far from what is the longest."""

About = tuple[str, ...]
"""An object's kind, namespace and name; empty for what is about none."""
_ANSWERS: Final = {False: b"\xc2", True: b"\xc3"}
"""To `may_bind`, as MessagePack."""


class NothingToShow(ValueError):
    """The recording does not show what it is to be cut down to; the message says so."""


class Line(NamedTuple):
    """What a core was told."""

    now: float
    message: messages.Message | str
    """Or the UID of a pod of which it was asked whether its binding still stands."""
    was_known: bool
    """Whether it was told when a file began."""
    recorded: bytes
    """What the recorded core asked for, or answered."""
    about: About


class Shown(NamedTuple):
    """What a core that was told some of the lines asked for."""

    asked: list[bytes]
    """By line."""
    state: SchedulerState
    failed: str = ""
    """At which error, and where, the core ended; the lines behind it were not told."""


Shows = Callable[[Sequence[Line], Shown], bool]
"""Whether lines, and what came of them, show what all of them show."""


@dataclass(frozen=True, slots=True)
class Told:
    """All that one core was told: the one of the last run that was played."""

    began: Began
    lines: Sequence[Line]
    core: type[SchedulerState] = SchedulerState

    @classmethod
    def of(
        cls,
        path: Path,
        registry: PluginRegistry = IN_TREE,
        until: float | None = None,
        core: type[SchedulerState] = SchedulerState,
    ) -> Told:
        """What a recording has, up to its first difference, to what the core fails at, or to a moment. `core`: what is
        told. Raises `UnusableRecording`, `OSError`."""
        collected = _Collected()
        Replay(path, registry=registry, listen=collected.entry, core=core).play(until)
        return cls(collected.began, collected.lines, core)

    def difference(self) -> Shows:
        """What tells whether lines show the difference that all of them end with, or the failure. Raises
        `NothingToShow`."""
        now, _, failed = self.played(self.lines)
        if failed:
            return lambda lines, shown: shown.failed == failed
        if not now or now[-1] == self.lines[-1].recorded:
            raise NothingToShow("nothing differs in it: give a --condition")
        target, wanted = self.lines[-1], now[-1]
        if _decided(target, wanted) != _decided(target, target.recorded):
            wanted = _decided(target, wanted)

        def shows(lines: Sequence[Line], shown: Shown) -> bool:
            if shown.failed or not lines or lines[-1] is not target:
                return False
            *before, last = shown.asked
            return wanted in (last, _decided(target, last)) and all(
                _decided(line, mine) == _decided(line, line.recorded)
                for line, mine in zip(lines[:-1], before, strict=True)
            )

        return shows

    def condition(self, text: str) -> Shows:
        """What tells whether an expression is true at the end of lines: of `pods` by NAMESPACE/NAME, each with `place`,
        `node` and `message`, and of the counts `waiting`, `bound` and `nodes`. Raises `NothingToShow`."""
        shown = self.played(self.lines)
        if shown.failed:
            raise NothingToShow(f"it ends with {shown.failed}; leave out the condition to keep what leads to that")
        try:
            found = _value(text, shown.state)
        except EvaluationError as error:
            raise NothingToShow(f"`{text}`: {error}; there are pods, waiting, bound and nodes") from None
        if found is not True:
            raise NothingToShow(f"`{text}` is {found!r} at its end, and not true")

        def shows(lines: Sequence[Line], shown: Shown) -> bool:
            try:
                return not shown.failed and _value(text, shown.state) is True
            except EvaluationError:  # a pod that it names is left out
                return False

        return shows

    def played(self, lines: Sequence[Line]) -> Shown:
        """Tell a core some of the lines."""
        state = self.core((), self.began.extenders, self.began.verifies_bindings)
        encoder = Encoder(asked=without_texts if self.began.redacted else bytes)
        asked: list[bytes] = []
        for line in lines:
            try:
                if isinstance(line.message, str):
                    asked.append(_ANSWERS[state.may_bind(line.message)])
                else:
                    actions = state.handle(line.message, line.now)
                    asked.append(encoder.asked(actions) if actions else b"")
            except Exception as error:
                # A core that is told only some of what happened may fail at any line, with anything: that is what
                # is looked for.
                where = traceback.extract_tb(error.__traceback__)[-1]
                failed = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
                return Shown(asked, state, failed)
        return Shown(asked, state)

    def write(self, lines: Sequence[Line], path: Path, differs: bool) -> None:
        """The lines as a recording of what this core asks for; where it `differs`, or fails, the last of them has what
        was recorded. Raises `OSError`."""
        asked, _, failed = self.played(lines)
        if failed:
            lines = lines[: len(asked) + 1]
        if differs or failed:
            asked[len(lines) - 1 :] = [lines[-1].recorded]
        encoder = Encoder()
        entries, writer = [encoder.began(self.began)], SegmentWriter()
        with path.open("wb") as file:
            file.write(MAGIC)
            for line, actions in zip(lines, asked, strict=True):
                entries += _entries(encoder, line, actions)
                if len(entries) >= MOST_OF_A_FRAME:
                    file.write(writer.frame(entries))
                    entries = []
            file.write(writer.frame(entries))


def _decided(line: Line, asked: bytes) -> bytes:
    """Actions without what is only said."""
    return without_texts(asked) if asked and not isinstance(line.message, str) else asked


def _value(condition: str, state: SchedulerState) -> object:
    pods = {
        pod.key: {"place": state.place(uid), "node": pod.node_name, "message": state.last_message(uid)}
        for uid, pod in state.view.pods.items()
    }
    bound = sum(bool(pod["node"]) for pod in pods.values())
    counts = {"waiting": len(pods) - bound, "bound": bound, "nodes": state.view.nodes.n}
    return evaluate(condition, {"pods": pods, **counts})


def _entries(encoder: Encoder, line: Line, asked: bytes) -> Iterator[bytes]:
    message = line.message
    if isinstance(message, str):
        yield encoder.may_bind(message, asked == _ANSWERS[True])
        return
    if isinstance(message, messages.ProfileReplaced | messages.CandidateLoaded) and (
        policy := encoder.policy(message.profile)
    ):
        yield policy
    written = encoder.body(message)
    name = type(message).__name__
    yield encoder.known(name, written) if line.was_known else encoder.entry(line.now, message, written, asked)


class _Collected:
    """The lines of the run that is played."""

    def __init__(self) -> None:
        self.began = Began("", "")
        self.lines: list[Line] = []
        self._pods: dict[str, About] = {}
        """By UID."""

    def entry(self, now: float, entry: Entry, message: messages.Message | None) -> None:
        """One more that a core was told, or the beginning of a run."""
        if entry.name == BEGAN:
            self.began = msgspec.msgpack.decode(entry.body, type=Began)
            self.lines = []
        elif message is not None:
            known = entry.now == KNOWN
            self.lines.append(Line(now, message, known, entry.actions, self._about(message)))
        else:
            uid, allowed = msgspec.msgpack.decode(entry.body, type=tuple[str, bool])
            self.lines.append(Line(now, uid, False, _ANSWERS[allowed], self._pods.get(uid, ())))

    def _about(self, message: Any) -> About:
        if type(message) in ABOUT:
            about = ABOUT[type(message)](message)
            if isinstance(message, messages.PodObserved):
                self._pods[message.pod.metadata.uid] = about
            return about
        asked = getattr(message, "asked", message)
        if uid := getattr(asked, "uid", ""):
            return self._pods.get(uid, ("Pod", "", uid))
        return (
            ("Node", "", asked.node) if isinstance(message, messages.NodePodsRead | messages.ReadNodePodsFailed) else ()
        )


class Shrinking:
    """One cutting down."""

    def __init__(
        self,
        told: Told,
        shows: Shows,
        progress: Callable[[float], None] = lambda share: None,
        most: int = MOST_MESSAGES,
    ) -> None:
        """`progress`: is told how much of the messages that may be played were: 0 to 1. `most`: how many these are."""
        self.left = most
        """Messages that may still be played."""
        self._told, self._shows, self._progress, self._most = told, shows, progress, most

    def fewest(self) -> list[Line]:
        """The lines that are left."""
        numbers = {id(line): number for number, line in enumerate(self._told.lines)}

        def in_order(some: Iterable[Sequence[Line]]) -> list[Line]:
            return sorted((line for lines in some for line in lines), key=lambda line: numbers[id(line)])

        about: dict[About, list[Line]] = {}
        for line in self._told.lines:
            about.setdefault(line.about, []).append(line)
        always = about.pop((), [])
        objects = self._fewest(list(about.values()), lambda some: in_order([always, *some]))
        return in_order(self._fewest([[line] for line in in_order([always, *objects])], in_order))

    def _fewest(
        self, parts: list[list[Line]], whole: Callable[[Iterable[Sequence[Line]]], list[Line]]
    ) -> list[list[Line]]:
        """Leave out parts, half of them first, then ever smaller shares, while what is left shows it."""
        size = len(parts)
        before = -1
        while parts and self.left > 0 and (size > 1 or len(parts) != before):
            size, start, before = (size + 1) // 2, 0, len(parts)
            while start < len(parts) and self.left > 0:
                fewer = parts[:start] + parts[start + size :]
                if self._shown(whole(fewer)):
                    parts = fewer
                else:
                    start += size
        return parts

    def _shown(self, lines: Sequence[Line]) -> bool:
        self.left -= len(lines) + 1
        self._progress(min(1.0, 1.0 - self.left / self._most))
        return self._shows(lines, self._told.played(lines))
