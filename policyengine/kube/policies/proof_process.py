"""The process that proves texts: `python -m policyengine.kube.policies.proof_process REGISTRY FORMAT NICENESS`.

    scheduler ──socket──> server: has imported everything, reads no text
                             └─fork─> supervisor: waits, and says how the proof ended
                                         └─fork─> proof: reads the texts, compiles and tests them, says what is wrong

Rules:
1. The kernel ends a proof at its limit of CPU time, and gives it no memory above its limit. No text can change that.
2. The server gets one end of a socket for each proof through its own, which is its standard input. When that is
   closed, the server ends, and all its proofs with it.
3. A proof writes a line with its process id, then one with the problem it found. The supervisor writes the last line.
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
from dataclasses import astuple
from pathlib import Path
from typing import Final, NoReturn

from policyengine.compiler.assemble import PluginRegistry
from policyengine.kube.config import process
from policyengine.kube.policies.allow_list import Allowed
from policyengine.kube.policies.compiling import compiled
from policyengine.language.diagnostics import Severity

MEMORY: Final = 128 << 20
"""Bytes that a proof may take beyond what the server has; the largest policies take about 20 MiB."""
_WARM: Final = """policy "warm" {
  filter "f" { require node.free.cpu > 1 }
  test "t" { given node "n" { allocatable: {cpu: 4, pods: 9} } given pod "p" {} expect "p" on "n" }
}"""
"""Whatever the first text makes once for all, proofs get from the server."""


def main(source: str, form: str, niceness: str) -> NoReturn:
    """Serve until standard input is closed.

    Arguments:
        source: `module:function` that returns the registry of plugins.
        form: of log lines, `text` or `json`.
        niceness: by how much others go first where CPUs are few.
    """
    process.start_logging("warning", form)
    registry: PluginRegistry = pkgutil.resolve_name(source)()
    compiled({"warm.policy": _WARM}, registry, Severity.INFO)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while True:
            asked, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not asked:
                os.killpg(0, signal.SIGKILL)
            with socket.socket(fileno=descriptors[0]) as connection, suppress(OSError):  # nobody answers: it is seen
                if os.fork() == 0:
                    _alone(_supervise, connection, registry, int(niceness))


def _alone(work: Callable[..., None], *given: object) -> NoReturn:
    """Work, and end without going back to what the process was forked from."""
    try:
        work(*given)
        os._exit(0)
    finally:
        os._exit(1)


def _supervise(connection: socket.socket, registry: PluginRegistry, niceness: int) -> None:
    """Start a proof; say by which signal it ended, if by any, and what CPU time it took."""
    os.close(sys.stdin.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        _alone(_prove, connection, registry, niceness)
    _, status, used = os.wait4(pid, 0)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    connection.sendall(json.dumps([ended, used.ru_utime + used.ru_stime]).encode())


def _prove(connection: socket.socket, registry: PluginRegistry, niceness: int) -> None:
    connection.sendall(b"%d\n" % os.getpid())
    os.nice(niceness)
    with connection.makefile("rb") as request:
        data, fail_level, is_tested, may, seconds = json.load(request)
    _limit(seconds)
    problem = compiled(data, registry, Severity(fail_level), is_tested, may and Allowed(*may)).problem
    connection.sendall(json.dumps(problem and astuple(problem)).encode() + b"\n")


def _limit(seconds: float) -> None:
    with suppress(OSError):  # no Linux: the system has neither
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first to go where the container has no memory left
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
