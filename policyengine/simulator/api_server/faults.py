"""Fault injection, said through an API of its own and never through the Kubernetes paths.

A `Rule` says which requests it means (verb, resource, client, a count) and what befalls them; all of faults.md can be
said with these: `Delay`, `Fail`, `Drop` (the connection, before or after the effect), and for watches `Garble`,
`Duplicate`, `Reorder`, `Withhold`, `Expire` (410 in the stream), `NoBookmarks`, `Cut`, `Stall`. Chance is seeded.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from policyengine.clock import Clock
from policyengine.simulator.api_server.requests import RequestInfo, Response
from policyengine.simulator.api_server.statuses import ApiError, expired
from policyengine.simulator.api_server.storage import encode


class ConnectionDropped(Exception):
    """The connection breaks without an answer; `applied` says whether the request took effect."""

    def __init__(self, applied: bool) -> None:
        super().__init__("the connection was dropped")
        self.applied = applied


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait before (or, `after`, once the effect is there but before the answer)."""

    seconds: float
    after: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an error and do nothing."""

    error: ApiError


@dataclass(frozen=True, slots=True)
class Drop:
    """Break the connection, before or after the effect."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class Garble:
    """Replace a watch line by a truncated one, or by `text`, and cut the stream."""

    text: bytes | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Send a watch line twice."""


@dataclass(frozen=True, slots=True)
class Reorder:
    """Send the next line first, then this one: an older resourceVersion after a newer."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """Never send a watch line."""


@dataclass(frozen=True, slots=True)
class Expire:
    """Send an ERROR event with 410 in place of a line, and end the stream."""


@dataclass(frozen=True, slots=True)
class NoBookmarks:
    """Send no bookmark."""


@dataclass(frozen=True, slots=True)
class Cut:
    """End the stream without a word before this line."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing for a time, the connection staying open."""

    seconds: float


Effect = Delay | Fail | Drop
LineEffect = Garble | Duplicate | Reorder | Withhold | Expire | NoBookmarks | Cut | Stall


@dataclass(slots=True)
class Rule:
    """Which requests (or watch lines) are meant, and what befalls them.

    Empty `verb`, `resource`, `client` (a part of the user agent), `name` or `event` mean any. The rule passes over
    the first `skip` that match, then acts on `times` of them (None: always), each with `probability`.
    """

    effect: Effect | LineEffect
    verb: str = ""
    resource: str = ""
    subresource: str | None = None
    client: str = ""
    name: str = ""
    event: str = ""
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0
    acted: int = field(default=0, init=False)

    def means(self, info: RequestInfo, user_agent: str) -> bool:
        """Whether a request is meant, the counts aside."""
        return (
            self.verb in ("", info.verb)
            and self.resource in ("", info.resource)
            and self.subresource in (None, info.subresource)
            and self.client in user_agent
            and self.name in ("", info.name)
        )


@dataclass(slots=True)
class Fault:
    """The effects that befall one request."""

    clock: Clock
    effects: list[Effect]

    async def around(self, act: Callable[[], Awaitable[Response]]) -> Response:
        """Carry out the request under the faults; raises ApiError and ConnectionDropped."""
        for effect in self.effects:
            if isinstance(effect, Delay) and not effect.after:
                await self.clock.sleep(effect.seconds)
            elif isinstance(effect, Fail):
                raise effect.error
            elif isinstance(effect, Drop) and not effect.after:
                raise ConnectionDropped(applied=False)
        response = await act()
        for effect in self.effects:
            if isinstance(effect, Delay) and effect.after:
                await self.clock.sleep(effect.seconds)
            elif isinstance(effect, Drop):
                raise ConnectionDropped(applied=True)
        return response


class Faults:
    """The rules in force."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock = clock
        self._random = random.Random(seed ^ 0x5EED)
        self.rules: list[Rule] = []

    @property
    def active(self) -> bool:
        """Whether any rule is in force."""
        return bool(self.rules)

    def add(self, effect: Effect | LineEffect, **which: object) -> Rule:
        """Put a rule in force; `which` are Rule's fields."""
        rule = Rule(effect, **which)  # type: ignore[arg-type]
        self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """Lift every rule."""
        self.rules.clear()

    def find(self, info: RequestInfo, user_agent: str) -> Fault | None:
        """What befalls a request, None for nothing."""
        effects: list[Effect] = []
        for rule in self.rules:
            effect = rule.effect
            if isinstance(effect, Delay | Fail | Drop) and rule.means(info, user_agent) and self._acts(rule):
                effects.append(effect)
        return Fault(self._clock, effects) if effects else None

    def _acts(self, rule: Rule) -> bool:
        if rule.skip > 0:
            rule.skip -= 1
            return False
        if rule.times is not None and rule.acted >= rule.times:
            return False
        if rule.probability < 1.0 and self._random.random() >= rule.probability:
            return False
        rule.acted += 1
        return True

    def line_effect(self, info: RequestInfo, user_agent: str, line: bytes) -> LineEffect | None:
        """What befalls one watch line."""
        for rule in self.rules:
            effect = rule.effect
            if isinstance(effect, Delay | Fail | Drop) or not rule.means(info, user_agent):
                continue
            bookmark = line.startswith(b'{"type":"BOOKMARK"')
            if isinstance(effect, NoBookmarks) is not bookmark and (bookmark or isinstance(effect, NoBookmarks)):
                continue
            if rule.event and not line.startswith(b'{"type":"' + rule.event.encode() + b'"'):
                continue
            if self._acts(rule):
                return effect
        return None

    async def stream(self, info: RequestInfo, user_agent: str, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A watch's lines under the faults."""
        held: bytes | None = None
        try:
            async for chunk in lines:
                for line in chunk.splitlines(keepends=True):
                    effect = self.line_effect(info, user_agent, line)
                    out, held, ends = apply_line(effect, line, held)
                    if isinstance(effect, Stall):
                        await self._clock.sleep(effect.seconds)
                    for each in out:
                        yield each
                    if ends:
                        return
            if held is not None:
                yield held
        finally:
            closer = getattr(lines, "aclose", None)
            if closer is not None:
                await closer()


def apply_line(effect: LineEffect | None, line: bytes, held: bytes | None) -> tuple[list[bytes], bytes | None, bool]:
    """`(lines to send, line held back, whether the stream ends)`."""
    match effect:
        case Withhold() | NoBookmarks():
            return [], held, False
        case Duplicate():
            return [line, line, *([held] if held else [])], None, False
        case Reorder() if held is None:
            return [], line, False
        case Garble():
            return [effect.text if effect.text is not None else line[: len(line) // 2]], None, True
        case Expire():
            status = expired("too old resource version: forced by a fault").status()
            return [b'{"type":"ERROR","object":' + encode(status) + b"}\n"], None, True
        case Cut():
            return [], None, True
        case _:
            return [line, *([held] if held else [])], None, False
