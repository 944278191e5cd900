"""Where a thread's processor time went, by its stacks."""

import sys
import threading
import time

import pytest

from policyengine.server.profiling import cpu_profile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a thread's CPU time")


def busily(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(1000))


def idly(stop: threading.Event) -> None:
    while not stop.is_set():
        time.sleep(0.005)


@pytest.mark.parametrize(("work", "is_seen"), [(busily, True), (idly, False)])
def test_a_stack_counts_by_the_processor_time_that_it_took(work: object, is_seen: bool) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))  # type: ignore[arg-type]
    thread.start()
    assert thread.ident is not None
    began = time.process_time()
    profile = cpu_profile(thread.ident, 0.5, threading.Event())
    most = (time.process_time() - began) * 1e6
    stop.set()
    thread.join()
    spent = {stack: int(micros) for stack, micros in (line.rsplit(" ", 1) for line in profile.splitlines())}
    ours = sum(micros for stack, micros in spent.items() if f".{work.__name__}" in stack)  # type: ignore[attr-defined]
    assert ours <= most * 1.05
    assert (ours > most / 2) is is_seen
    assert all(stack.startswith("threading.Thread._bootstrap;") for stack in spent)


def test_it_ends_at_once_when_it_is_told_to() -> None:
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    cpu_profile(threading.get_ident(), 60, stop)
    assert time.monotonic() - began < 5
