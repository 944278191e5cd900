"""An event loop whose time jumps to the next timer: minutes pass in microseconds, and nothing waits for real."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = 1_767_600_000.0


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("the loop waits for something that never comes")
        self.time += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time, for code that does no input or output."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.time

    def jump(self, seconds: float) -> None:
        """Let time pass in the middle of what runs now."""
        self._jumping.time += seconds


class VirtualClock:
    """The running loop's time; the wall clock can be set apart from it."""

    def __init__(self) -> None:
        self.wall_offset = EPOCH

    def now(self) -> float:
        return self.wall_offset + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
