"""The process behind `LimitedWork`: `python -m policyengine.kube.limited_process MODULE:FUNCTION NICENESS [ARGUMENT…]`.

    asker ──socket──> server: has imported everything, reads no request
                         └─fork─> supervisor: waits, and says how the work ended
                                     └─fork─> worker: reads a request, answers it

Rules:
1. The kernel ends a worker at its limit of CPU time, and gives it no memory above its limit. No request can change
   that.
2. The server gets one end of a socket for each request through its own, which is its standard input. When that is
   closed, the server ends, and all its workers with it.
3. A worker writes a line with its process id, then one with its answer. The supervisor writes the last line.
4. Python where no memory is left raises MemoryError, or anything else, or crashes. So the supervisor judges by what a
   worker without an answer had taken.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

Work = Callable[[Any], Any]
"""A request -> its answer; both as JSON has them."""
MEMORY: Final = 128 << 20
"""Bytes that a worker may take beyond what the server has; the largest policies take about 20 MiB."""
CRASHES: Final = (0, signal.SIGABRT, signal.SIGBUS, signal.SIGSEGV)
"""How a process ends of itself, without an answer."""


def main(prepare: str, niceness: str, *arguments: str) -> NoReturn:
    """Serve until standard input is closed.

    Arguments:
        prepare: `module:function` that is given the arguments, and returns the work; what it imports and makes, workers
            get from the server.
        niceness: by how much others go first where CPUs are few.
    """
    work: Work = pkgutil.resolve_name(prepare)(*arguments)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while True:
            asked, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not asked:
                os.killpg(0, signal.SIGKILL)
            with socket.socket(fileno=descriptors[0]) as connection, suppress(OSError):  # nobody answers: it is seen
                if os.fork() == 0:
                    _alone(_supervise, connection, work, int(niceness))


def _alone(task: Callable[..., None], *given: object) -> NoReturn:
    """Do it, and end without going back to what the process was forked from."""
    try:
        task(*given)
        os._exit(0)
    finally:
        os._exit(1)


def _supervise(connection: socket.socket, work: Work, niceness: int) -> None:
    """Start a worker; say by which signal it ended, if by any, what CPU time it took, and whether it wanted memory."""
    os.close(sys.stdin.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        _alone(_answer, connection, work, niceness)
    _, status, used = os.wait4(pid, 0)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    is_out_of_memory = bool(status) and ended in CRASHES and _taken(used) > MEMORY / 2
    connection.sendall(json.dumps([ended, used.ru_utime + used.ru_stime, is_out_of_memory]).encode())


def _taken(used: resource.struct_rusage) -> int:
    """Bytes that a worker took at its most beyond what it was forked with; 0 where the system has no limit of them."""
    if sys.platform != "linux":
        return 0
    return 1024 * (used.ru_maxrss - resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _answer(connection: socket.socket, work: Work, niceness: int) -> None:
    connection.sendall(b"%d\n" % os.getpid())
    os.nice(niceness)
    with connection.makefile("rb") as asked:
        seconds, request = json.load(asked)
    _limit(seconds)
    connection.sendall(json.dumps(work(request)).encode() + b"\n")


def _limit(seconds: float) -> None:
    with suppress(OSError):  # no Linux: the system has neither
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first to go where the container has no memory left
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
