"""The embedded API server in a process of its own: says its URL, serves until its standard input ends."""

from __future__ import annotations

import asyncio

from policyengine.clock import SystemClock
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.benchmark.processes import say, stdin_closed


async def main() -> None:
    """Serve."""
    site = await serve(ApiServer(SystemClock()))
    say({"url": site.url})
    await stdin_closed()
    await site.stop()


if __name__ == "__main__":
    asyncio.run(main())
