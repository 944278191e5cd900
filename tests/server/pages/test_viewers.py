"""Open pages are followed: who looks hears what changed, nobody costs nothing, too many and the slow are sent away."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import aiohttp
import pytest

from policyengine.scheduler.messages import PodDeleted
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages import rendering, viewers
from tests.scheduler.driver import Driver, node, pod
from tests.server.pages.scenes import Pages, pages

STREAM = {"Accept": "text/event-stream"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "PERIOD", 0.01)
    monkeypatch.setattr(viewers, "REST", 0.0)


@asynccontextmanager
async def followed(site: Pages, path: str = "") -> AsyncIterator[aiohttp.ClientResponse]:
    async with site.session.get(f"/ui/{path}", headers=STREAM) as answer:
        yield answer


async def heard(answer: aiohttp.ClientResponse) -> dict[str, str]:
    async with asyncio.timeout(30):
        while True:
            line = await answer.content.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                parts: dict[str, str] = json.loads(line[6:])
                return parts


async def test_a_viewer_hears_the_parts_that_changed_and_no_others() -> None:
    driver = Driver()
    async with pages(driver.state, driver.now) as site, followed(site) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        first = await heard(answer)
        assert "No pod waits." in first["queue"]
        driver.see(pod("p"))
        second = await heard(answer)
        assert "active" in second["queue"] and "heat_data" not in second
        driver.see(node("n1"))
        assert '"n1"' in (await heard(answer))["heat_data"]


@pytest.mark.parametrize("path", ["", "pods", "pods/default/p", "nodes", "nodes/n1", "policies"])
async def test_every_part_of_a_page_can_be_sent_by_itself(path: str) -> None:
    driver = Driver()
    driver.see(node("n1"), pod("p"), pod("q", cpu="9"))
    driver.cycle()
    async with pages(driver.state, driver.now) as site, followed(site, path) as answer:
        text = await site.get(path)
        for name, html in (await heard(answer)).items():
            assert f'id="{name}" data-live' in text
            assert html in text


async def test_nothing_is_rendered_once_nobody_looks() -> None:
    async with pages(SchedulerState()) as site:
        async with followed(site) as answer:
            await heard(answer)
            assert site.site.viewers.count == 1
        await site.left()
        await asyncio.sleep(0.1)
        rounds = site.site.viewers.rounds
        await asyncio.sleep(0.1)
        assert site.site.viewers.rounds == rounds


async def test_a_hundred_tabs_are_followed_as_far_as_there_are_places_and_the_rest_is_told() -> None:
    async with pages(SchedulerState()) as site:
        answers = [await site.session.get("/ui/", headers=STREAM) for _ in range(100)]
        by_status = {status: [one for one in answers if one.status == status] for status in (200, 503)}
        assert {status: len(found) for status, found in by_status.items()} == {
            200: viewers.MOST,
            503: 100 - viewers.MOST,
        }
        assert "reload this one by hand" in await by_status[503][0].text()
        assert "No pod waits." in (await heard(by_status[200][-1]))["queue"]
        assert "No pod waits." in await site.get("")
        for answer in answers:
            answer.close()


async def test_a_page_that_fails_is_left_as_it_was_and_its_viewer_kept() -> None:
    driver = Driver()
    driver.see(pod("p"))
    async with pages(driver.state, driver.now) as site, followed(site, "pods/default/p") as answer:
        assert "active" in (await heard(answer))["state"]
        driver.send(PodDeleted("default", "p", "p"))
        status, text = await site.answer("pods/default/p")
        assert (status, "no pod `default/p` waits or runs here" in text) == (404, True)
        driver.see(pod("p"), node("n1"))
        assert "n1" in (await heard(answer))["verdicts"]


async def test_a_viewer_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "PATIENCE", 0.05)
    numbers = count()
    monkeypatch.setattr(rendering, "live_parts", lambda *_: {"part": f"{next(numbers)}" * 1_000_000})
    async with pages(SchedulerState()) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"GET /ui/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        await reader.readline()
        await site.left()
        writer.close()
