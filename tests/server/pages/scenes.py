"""Pages of a state, asked for over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from policyengine.clock import SystemClock
from policyengine.scheduler.state import SchedulerState
from policyengine.server.listening import listening
from policyengine.server.pages.site import Site
from policyengine.server.pages.source import Moment, Present, Source


class Pages:
    """A client of them."""

    def __init__(self, session: aiohttp.ClientSession, site: Site, port: int) -> None:
        self.session = session
        self.port = port
        self.site = site

    async def get(self, path: str, **query: str) -> str:
        """A page that is there."""
        status, text = await self.answer(path, **query)
        assert status == 200, text
        return text

    async def left(self) -> None:
        """Return once nobody follows a page any more."""
        async with asyncio.timeout(60):
            while self.site.viewers.count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def answer(self, path: str, **query: str) -> tuple[int, str]:
        async with self.session.get(f"/ui/{path}", params=query) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def pages(
    source: Source | SchedulerState, now: float = 0.0, hosts: Sequence[str] = (), other: Source | None = None
) -> AsyncIterator[Pages]:
    if isinstance(source, SchedulerState):
        still = Moment(source, now, "test")
        source = Present("still", lambda: still)
    application = web.Application()
    site = Site(source, SystemClock(), hosts, other)
    site.add_to(application)
    async with (
        listening(application, "127.0.0.1:0", None, 256, 0.1) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        yield Pages(session, site, port)
