"""Work that is done by a process beside this one, where there is a processor for it."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from policyengine.commands.options import UnusableInput

T = TypeVar("T")


@contextmanager
def beside(work: Callable[[], T], is_worth_it: bool = True) -> Iterator[Callable[[], T]]:
    """Begin the work; what is given waits for its result, or raises what it raised. To be entered before threads are
    started. Without a second processor, where the system cannot fork, and where it is not worth a process, the work is
    done when it is asked for.

    The result travels as `pickle` writes it. Raises `UnusableInput` where the process was killed: memory is short.
    """
    if not is_worth_it or not _can_fork():
        yield work
        return
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    gc.freeze()  # what is shared stays shared: it is not looked through again
    process = multiprocessing.get_context("fork").Process(target=_done, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield lambda: _received(ours)
    finally:
        gc.unfreeze()
        ours.close()
        process.kill()  # not by SIGTERM: whoever started us may have a handler for it, which a fork keeps
        process.join()


def _can_fork() -> bool:
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1


def _done(work: Callable[[], T], answers: Connection) -> None:
    try:
        answers.send((work(), None))
    except Exception as error:
        answers.send((None, error))


def _received(answers: Connection) -> Any:
    try:
        found, error = answers.recv()
    except EOFError:
        raise UnusableInput("the process that played the old policy was killed; is memory short?") from None
    if error is not None:
        raise error
    return found
