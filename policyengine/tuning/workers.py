"""Where candidates are played: in processes of this machine, or on a Ray cluster. The answers come in the order asked,
and are the same wherever they were found."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol

from policyengine.tuning.judging import Job, Judged, Task, judge

RETRIES = 3
"""How often a task is played again whose worker was lost."""


class WorkersUnusable(RuntimeError):
    """There is nobody to play; the message says why."""


class Workers(AbstractContextManager["Workers"], Protocol):
    """Play tasks of one job."""

    def judged(self, tasks: Sequence[Task]) -> Iterator[Judged]:
        """Each task's answer, in order. Raises as `judging.judge`, `WorkersUnusable`."""


class Processes(Workers):
    """Processes of this machine. One alone is this one."""

    def __init__(self, job: Job, count: int) -> None:
        self._job = job
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(count, context, initializer=_take_job, initargs=(job,)) if count > 1 else None

    def judged(self, tasks: Sequence[Task]) -> Iterator[Judged]:
        """As `Workers` has it."""
        if self._pool is None:
            yield from (judge(self._job, task) for task in tasks)
            return
        asked: list[Future[Judged]] = [self._pool.submit(_judged, task) for task in tasks]
        try:
            for one in asked:
                yield one.result()
        except BrokenProcessPool:
            raise WorkersUnusable("a process that played was killed; what it had finished is kept") from None
        finally:
            for one in asked:
                one.cancel()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


_job: list[Job] = []
"""In a process of `Processes`: its job."""


def _take_job(job: Job) -> None:
    _job[:] = [job]


def _judged(task: Task) -> Judged:
    return judge(_job[0], task)


class Ray(Workers):
    """The workers of a Ray cluster, scheduled by Ray; the job is placed in its object store once."""

    def __init__(self, job: Job, address: str) -> None:
        """`address`: as `ray.init` takes it, `auto`, `host:port`, `ray://host:port`; `local` starts one here."""
        try:
            self._ray: Any = import_module("ray")
        except ImportError:
            raise WorkersUnusable("--ray needs Ray: pip install 'policyengine-scheduler[ray]'") from None
        where = {"num_cpus": multiprocessing.cpu_count()} if address == "local" else {"address": address}
        try:
            self._ray.init(**where, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise WorkersUnusable(f"Ray at `{address}`: {str(error).splitlines()[0]}") from None
        self._job = self._ray.put(job)
        self._judge = self._ray.remote(max_retries=RETRIES)(judge)

    def judged(self, tasks: Sequence[Task]) -> Iterator[Judged]:
        """As `Workers` has it."""
        asked = [self._judge.remote(self._job, task) for task in tasks]
        try:
            for one in asked:
                yield self._ray.get(one)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.WorkerCrashedError:
            raise WorkersUnusable(f"a worker of Ray was lost {RETRIES + 1} times over one task") from None
        finally:
            for one in asked:
                self._ray.cancel(one, force=False)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ray.shutdown()
