"""Fault injection, said in Python and never through the Kubernetes paths.

A `Rule` says which requests it means (verb, resource, client, user, a count, a span of time) and what is done to them;
`effects` lists the effects. Chance is seeded.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from policyengine.clock import Clock
from policyengine.simulator.api_server.http_requests import ConnectionDropped, Request, RequestInfo, Response
from tests.faulty_server import effects
from tests.faulty_server.effects import Effect, LineEffect, Lines

Act = Callable[[], Awaitable[Response]]


@dataclass(slots=True, kw_only=True)
class Rule:
    """Which requests (or watch lines) are meant, and what is done to them.

    Empty `verb`, `resource`, `client` (a part of the user agent), `user`, `namespace`, `name` or `event` mean any.
    The rule passes over the first `skip` that match, then acts on `times` of them (None: always), each with
    `probability`, for `seconds` from when it was added (None: until it is lifted).
    """

    effect: Effect | LineEffect
    verb: str = ""
    resource: str = ""
    subresource: str | None = None
    client: str = ""
    user: str = ""
    namespace: str = ""
    name: str = ""
    event: str = ""
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0
    seconds: float | None = None
    acted: int = field(default=0, init=False)
    ends: float | None = field(default=None, init=False)

    def means(self, info: RequestInfo, user_agent: str, user: str = "") -> bool:
        """Whether a request is meant, the counts aside."""
        return (
            self.verb in ("", info.verb)
            and self.resource in ("", info.resource)
            and self.subresource in (None, info.subresource)
            and self.client in user_agent
            and self.user in ("", user)
            and self.namespace in ("", info.namespace)
            and self.name in ("", info.name)
        )


async def _half(body: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Half of a body, or of a stream's first piece, and the connection breaks."""
    if isinstance(body, bytes):
        yield body[: len(body) // 2]
        raise ConnectionDropped
    try:
        async for piece in body:
            yield piece[: len(piece) // 2]
            raise ConnectionDropped
    finally:
        closer = getattr(body, "aclose", None)
        if closer is not None:
            await closer()


class Faults:
    """The rules in force. `perform` carries out a request as administrator; `revision` is the store's newest."""

    def __init__(
        self, clock: Clock, seed: int, perform: Callable[[Request], Awaitable[Response]], revision: Callable[[], int]
    ) -> None:
        self.clock = clock
        self.revision = revision
        self.rules: list[Rule] = []
        self._perform = perform
        self._random = random.Random(seed ^ 0x5EED)

    def add(self, effect: Effect | LineEffect, **which: Any) -> Rule:
        """Put a rule in force; `which` are Rule's fields."""
        rule = Rule(effect=effect, **which)
        if rule.seconds is not None:
            rule.ends = self.clock.monotonic() + rule.seconds
        self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """Lift every rule."""
        self.rules.clear()

    def find(self, info: RequestInfo, user_agent: str, user: str = "") -> list[Effect]:
        """The effects on a request."""
        found: list[Effect] = []
        for rule in tuple(self.rules):
            effect = rule.effect
            if isinstance(effect, effects.REQUEST_EFFECTS) and rule.means(info, user_agent, user) and self._acts(rule):
                found.append(effect)
        return found

    async def around(self, effects: list[Effect], request: Request, act: Act) -> Response:
        """Carry out a request under effects; raises ApiError and ConnectionDropped."""
        for effect in effects:
            answer = await self._before(effect, request)
            if answer is not None:
                return answer
        response = await act()
        for effect in effects:
            response = await self._after(effect, response)
        return response

    async def _before(self, effect: Effect, request: Request) -> Response | None:
        match effect:
            case effects.Delay(seconds, after=False):
                await self.clock.sleep(seconds)
            case effects.Fail(error):
                raise error
            case effects.Overload(retry_after):
                return effects.overloaded(retry_after)
            case effects.Drop(after=False):
                raise ConnectionDropped(effect.reached)
            case effects.Stale(revisions):
                request.as_of = max(0, self.revision() - revisions)
            case effects.Meanwhile(requests, after=False):
                for other in requests:
                    await self._perform(other)
        return None

    async def _after(self, effect: Effect, response: Response) -> Response:
        match effect:
            case effects.Delay(seconds, after=True):
                await self.clock.sleep(seconds)
            case effects.Drop(after=True):
                raise ConnectionDropped
            case effects.Truncate():
                return Response(response.status, response.headers, _half(response.body))
            case effects.Meanwhile(requests, after=True):
                for other in requests:
                    await self._perform(other)
        return response

    def _acts(self, rule: Rule) -> bool:
        if rule.ends is not None and self.clock.monotonic() >= rule.ends:
            self.rules.remove(rule)
            return False
        if rule.skip > 0:
            rule.skip -= 1
            return False
        if rule.times is not None and rule.acted >= rule.times:
            return False
        if rule.probability < 1.0 and self._random.random() >= rule.probability:
            return False
        rule.acted += 1
        return True

    def line_effect(self, info: RequestInfo, user_agent: str, line: bytes, user: str = "") -> LineEffect | None:
        """The effect on one watch line."""
        bookmark = line.startswith(b'{"type":"BOOKMARK"')
        for rule in tuple(self.rules):
            effect = rule.effect
            if isinstance(effect, effects.REQUEST_EFFECTS) or not rule.means(info, user_agent, user):
                continue
            if isinstance(effect, effects.NoBookmarks) is not bookmark and rule.event != "BOOKMARK":
                continue
            if rule.event and not line.startswith(b'{"type":"' + rule.event.encode() + b'"'):
                continue
            if self._acts(rule):
                return effect
        return None

    async def stream(
        self, info: RequestInfo, user_agent: str, lines: AsyncIterator[bytes], user: str = ""
    ) -> AsyncIterator[bytes]:
        """A watch's lines under the faults."""
        state = Lines()
        try:
            async for chunk in lines:
                if not self.rules and state.is_idle:
                    yield chunk
                    continue
                for line in chunk.splitlines(keepends=True):
                    effect = self.line_effect(info, user_agent, line, user)
                    out, ends = state.apply(effect, line)
                    if isinstance(effect, effects.Stall):
                        await self.clock.sleep(effect.seconds)
                    for each in out:
                        yield each
                    if ends:
                        return
            if state.held is not None:
                yield state.held
        finally:
            closer = getattr(lines, "aclose", None)
            if closer is not None:
                await closer()
