"""How far something is that takes long: a line on standard error, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

AFTER: Final = 2.0
"""Seconds that pass in silence."""

Told = Callable[[float], None]
"""Is told how far it is: 0 to 1."""


@contextmanager
def progress(what: str) -> Iterator[Told]:
    """Show, while the block runs, that `what` is done and how far that is; nothing for the first two seconds, and
    nothing at all where standard error is no terminal. Before the first word of how far, only that it is done."""
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    line = _Line(what)
    timer = Timer(AFTER, line.show)
    timer.daemon = True
    timer.start()
    try:
        yield line.told
    finally:
        timer.cancel()
        line.end()


class _Line:
    """The line. The timer's thread shows it, another one tells how far things are."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown: tuple[Progress, TaskID] | None = None
        self._is_over = False
        self._lock = Lock()

    def show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        with self._lock:
            if self._is_over:
                return
            columns = (TextColumn(self._what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._shown = bar, bar.add_task("", total=None)
            bar.start()

    def told(self, share: float) -> None:
        if self._shown is not None:
            bar, task = self._shown
            bar.update(task, total=1.0, completed=share)

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown[0].stop()


class Stages:
    """One line after the other, for work of several stages."""

    def __init__(self) -> None:
        self._what = ""
        self._line: ExitStack | None = None
        self._told: Told = lambda share: None

    def __enter__(self) -> Stages:
        return self

    def told(self, what: str, share: float) -> None:
        """Of a stage, how far it is; a name that is new begins the next one."""
        if what != self._what:
            self.__exit__()
            self._what, self._line = what, ExitStack()
            self._told = self._line.enter_context(progress(what))
        self._told(share)

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
