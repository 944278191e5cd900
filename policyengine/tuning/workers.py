"""Where runs are played: in processes of this machine, or on a Ray cluster. The answers are the same wherever they
were found."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from importlib import import_module
from threading import Thread
from types import TracebackType
from typing import Any, Protocol, TypeVar

from policyengine.seldom_collected import collect_seldom

Task = TypeVar("Task", contravariant=True)
Answer = TypeVar("Answer", covariant=True)
RETRIES = 3
"""How often a task is played again whose worker was lost."""


class WorkersUnusable(RuntimeError):
    """There is nobody to play; the message says why."""


class Workers(AbstractContextManager["Workers[Any, Any]"], Protocol[Task, Answer]):
    """Do the same work for many tasks."""

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Each task's answer, in order. Raises as the work does, `WorkersUnusable`."""
        return (answer for _, answer in self.told(tasks, as_finished=False))

    def as_finished(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
        """Each task's place and answer, once it is finished. Raises as `answers`."""
        return self.told(tasks, as_finished=True)

    def told(self, tasks: Sequence[Task], as_finished: bool) -> Iterator[tuple[int, Answer]]:
        """Each task's place and answer, in order or once it is finished. Raises as `answers`."""


class Processes(Workers[Task, Answer]):
    """Processes of this machine. One alone is this one."""

    def __init__(self, work: Callable[[Task], Answer], count: int) -> None:
        """`work`: what a process can be told of, a `partial` of a function of a module."""
        self._work = work
        context = multiprocessing.get_context("spawn")
        self._pool = (
            ProcessPoolExecutor(count, context, initializer=_take_work, initargs=(work,)) if count > 1 else None
        )

    def told(self, tasks: Sequence[Task], as_finished: bool) -> Iterator[tuple[int, Answer]]:
        """As `Workers` has it."""
        if self._pool is None:
            collect_seldom()
            yield from enumerate(map(self._work, tasks))
            return
        # The processes that begin now hear Ctrl-C from `_take_work` on; here it is heard once they have begun.
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            asked: dict[Future[Any], int] = {self._pool.submit(_answer, task): at for at, task in enumerate(tasks)}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)
        try:
            for one in as_completed(asked) if as_finished else asked:
                yield asked[one], one.result()
        except BrokenProcessPool:
            raise WorkersUnusable("a process that played was killed; what it had finished is kept") from None
        finally:
            for one in asked:
                one.cancel()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


_work: list[Callable[[Any], Any]] = []
"""In a process of `Processes`: what it does."""


def _take_work(work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends it without a word: whoever asked has one to say
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    collect_seldom()
    _work[:] = [work]
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Whoever asked may be killed: nobody takes the answers then, and the pool itself would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _answer(task: Any) -> Any:
    return _work[0](task)


def _done(work: Callable[[Any], Any], task: Any) -> Any:
    collect_seldom()
    return work(task)


class Ray(Workers[Task, Answer]):
    """The workers of a Ray cluster, scheduled by Ray; what they are to do is placed in its object store once."""

    def __init__(self, work: Callable[[Task], Answer], address: str) -> None:
        """`address`: as `ray.init` takes it, `auto`, `host:port`, `ray://host:port`; `local` starts one here."""
        try:
            self._ray: Any = import_module("ray")
        except ImportError:
            raise WorkersUnusable("--ray needs Ray: pip install 'policyengine-scheduler[ray]'") from None
        where = {"num_cpus": multiprocessing.cpu_count()} if address == "local" else {"address": address}
        try:
            self._ray.init(**where, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        except Exception as error:  # Ray raises no kind of its own where a node does not come up
            why = (str(error) or type(error).__name__).splitlines()[0]
            raise WorkersUnusable(f"Ray at `{address}`: {why}") from None
        self._work = self._ray.put(work)
        self._done = self._ray.remote(max_retries=RETRIES)(_done)

    def told(self, tasks: Sequence[Task], as_finished: bool) -> Iterator[tuple[int, Answer]]:
        """As `Workers` has it."""
        asked = {self._done.remote(self._work, task): place for place, task in enumerate(tasks)}
        waiting = list(asked)
        try:
            while waiting:
                (one,), waiting = self._ray.wait(waiting) if as_finished else (waiting[:1], waiting[1:])
                answer = self._ray.get(one)
                yield asked.pop(one), answer
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.WorkerCrashedError:
            raise WorkersUnusable(f"a worker of Ray was lost {RETRIES + 1} times over one task") from None
        finally:
            for one in asked:  # of those that have ended there is nothing to cancel
                self._ray.cancel(one, force=False)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ray.shutdown()
