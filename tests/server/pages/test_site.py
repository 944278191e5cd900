"""The pages over HTTP: who may ask by what name, what a browser is told, and that hostile names stay names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from policyengine.clock import SystemClock
from policyengine.scheduler.state import SchedulerState
from policyengine.server.listening import listening
from policyengine.server.pages.site import Site
from policyengine.server.pages.source import Moment, StillSource


@asynccontextmanager
async def pages(state: SchedulerState, hosts: tuple[str, ...] = ()) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the pages of this state."""
    application = web.Application()
    Site(StillSource("still", Moment(state, 0.0, "test")), SystemClock(), hosts).add_to(application)
    async with (
        listening(application, "127.0.0.1:0", None, 64, 0.1) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        yield session


async def test_the_root_leads_to_the_overview() -> None:
    async with pages(SchedulerState()) as session, session.get("/") as answer:
        assert (answer.status, answer.url.path) == (200, "/ui/")
        assert "No pod waits." in await answer.text()


@pytest.mark.parametrize("path", ["/ui/", "/ui/static/pages.css", "/ui/static/none.css", "/ui/?at=x"])
async def test_every_answer_forbids_what_is_not_ours(path: str) -> None:
    async with pages(SchedulerState()) as session, session.get(path) as answer:
        told = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in told and "script-src 'self';" in told and "frame-ancestors 'none'" in told
        assert "unsafe" not in told
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("10.1.2.3:10259", 200),
        ("[::1]:8770", 200),
        ("pages.example", 200),
        ("PAGES.EXAMPLE:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
async def test_only_addresses_and_names_that_were_given_may_be_asked_for(host: str, status: int) -> None:
    async with pages(SchedulerState(), ("pages.example",)) as session:
        for path in ("/ui/", "/ui/static/pages.css", "/"):
            async with session.get(path, headers={"Host": host}, allow_redirects=False) as answer:
                assert answer.status == (302 if path == "/" and status == 200 else status)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_changed(method: str) -> None:
    async with pages(SchedulerState()) as session, session.request(method, "/ui/") as answer:
        assert answer.status == 405


@pytest.mark.parametrize("at", ["x", "nan", "-1", "1e300", "inf", "<script>"])
async def test_a_moment_that_is_none_is_refused_in_words(at: str) -> None:
    async with pages(SchedulerState()) as session, session.get("/ui/", params={"at": at}) as answer:
        text = await answer.text()
        assert answer.status == 400
        assert "is no moment" in text and "<script>" not in text.replace('<script src="', "")


async def test_files_beside_the_static_ones_are_not_served() -> None:
    async with pages(SchedulerState()) as session:
        for name in ("..%2Fsite.py", "%2e%2e/site.py", "site.py", "..%2Ftemplates%2Fbase.html"):
            async with session.get(f"/ui/static/{name}") as answer:
                assert answer.status == 404
