"""What is recorded: each script makes its calls in order, in a namespace of its own."""

from collections.abc import Awaitable, Callable, Iterable

from tests.record import access, bad_input, bad_writes, original, reads
from tests.record.session import Session

SCRIPTS: dict[str, Callable[[Session], Awaitable[None]]] = {
    "reads": reads.run,
    "bad-input": bad_input.run,
    "bad-writes": bad_writes.run,
    "access": access.run,
}


ALL = {**SCRIPTS, "original": original.run}
"""Besides these, the recorded file's own calls; they need a fresh server."""


async def run(session: Session, names: Iterable[str]) -> None:
    """Run scripts in order."""
    await session.begin()
    try:
        for name in names:
            await ALL[name](session)
    finally:
        await session.end()
