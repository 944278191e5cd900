"""Keeps open pages fresh by server-sent events.

Rules:
1. Without viewers nothing runs. One task renders each page that is looked at once, for all who look at it.
2. After a round that took t seconds the next comes no sooner than `REST` times t: however many look at however large a
   cluster, the scheduler beside pays less than 2 % of its time.
3. A viewer who does not read what it is sent is dropped; one more than `MOST` is told so, and reloads by hand.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from policyengine.clock import Clock
from policyengine.server.pages.source import NotShown

logger = logging.getLogger(__name__)

STREAM: Final = "text/event-stream"
MOST: Final = 64
"""Viewers at once."""
PERIOD: Final = 2.0
"""Seconds between two rounds at least."""
REST: Final = 60.0
PATIENCE: Final = 10.0
"""Seconds for which a viewer may leave unread what it was sent."""
BEHIND: Final = 4
"""Messages that may wait for one viewer."""
HEARTBEAT: Final = 15.0
"""Seconds after which a viewer hears something, so that a dead one is found."""

Parts = dict[str, str]
"""Id of an element -> its HTML."""
Render = Callable[[], Awaitable[Parts]]


class _Viewer:
    def __init__(self) -> None:
        self.parts: Parts = {}
        """What it shows."""
        self.waiting: asyncio.Queue[Parts | None] = asyncio.Queue(BEHIND)
        """What it is to be sent; None at the end."""

    def show(self, parts: Parts) -> bool:
        """Send what is not what it shows; whether it can be."""
        changed = {name: html for name, html in parts.items() if self.parts.get(name) != html}
        if changed:
            self.parts = parts
            try:
                self.waiting.put_nowait(changed)
            except asyncio.QueueFull:
                return False
        return True


class Viewers:
    """Everybody who looks at a page."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: dict[str, tuple[Render, set[_Viewer]]] = {}
        """Address of a page -> how it is rendered, who looks at it."""
        self._work: asyncio.Task[None] | None = None
        self.rounds = 0
        """How often the pages were rendered so far."""

    @property
    def count(self) -> int:
        """How many look at the moment."""
        return sum(len(viewers) for _, viewers in self._pages.values())

    async def stream(self, request: web.Request, render: Render, headers: Mapping[str, str]) -> web.StreamResponse:
        """Send the page of this request anew whenever it changes, until its viewer goes."""
        if self.count >= MOST:
            return web.Response(status=503, text=f"{MOST} pages are watched already; reload this one by hand\n")
        viewer, page = _Viewer(), request.path_qs
        response = web.StreamResponse(headers={**headers, "Content-Type": STREAM, "X-Accel-Buffering": "no"})
        _, viewers = self._pages.setdefault(page, (render, set()))
        viewers.add(viewer)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._render_again_and_again())
        try:
            await response.prepare(request)
            await self._send(viewer, response)
        except ConnectionError:
            pass
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()  # its end would wait for the same reader
        finally:
            viewers.discard(viewer)
            if not viewers:
                del self._pages[page]
        return response

    async def _send(self, viewer: _Viewer, response: web.StreamResponse) -> None:
        while True:
            text = ": still here\n\n"
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    parts = await viewer.waiting.get()
                if parts is None:
                    return
                text = f"data: {json.dumps(parts, ensure_ascii=False)}\n\n"
            async with asyncio.timeout(PATIENCE):
                await response.write(text.encode(errors="replace"))

    async def _render_again_and_again(self) -> None:
        while self._pages:
            spent = 0.0
            for page in list(self._pages):
                if page in self._pages:
                    began = self._clock.monotonic()
                    await self._render(*self._pages[page])
                    spent += self._clock.monotonic() - began
                    await asyncio.sleep(0)
            self.rounds += 1
            await self._clock.sleep(max(PERIOD, REST * spent))

    async def _render(self, render: Render, viewers: set[_Viewer]) -> None:
        try:
            parts = await render()
        except NotShown:  # the page itself says so to whoever reloads it
            return
        except Exception:
            logger.exception("a page could not be rendered for its viewers")
            return
        for viewer in list(viewers):
            if not viewer.show(parts):
                self.end(viewer)

    @staticmethod
    def end(viewer: _Viewer) -> None:
        """The viewer is sent no more."""
        viewer.waiting.get_nowait()
        viewer.waiting.put_nowait(None)

    def close(self) -> None:
        """Send everybody away."""
        if self._work is not None:
            self._work.cancel()
        for _, viewers in self._pages.values():
            for viewer in viewers:
                if viewer.waiting.full():
                    self.end(viewer)
                else:
                    viewer.waiting.put_nowait(None)
