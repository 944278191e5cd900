"""`getHours`, `getMonth`, …: parts of a timestamp in a time zone, and of a duration.

Zones are names of the IANA database, or offsets such as `+01:00`; UTC by default. Days and months count from 0
where CEL counts them so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from policyengine.language.functions.arithmetic import divide, remainder
from policyengine.language.functions.bounds import ANY_NUMBER, Bounds, Interval, of_kind
from policyengine.language.functions.table import Cost, Function, Implementation, Overload, Style, function
from policyengine.language.types import DURATION, INT, STRING, TIMESTAMP, Kind
from policyengine.language.values import EvaluationError, shortened

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", re.ASCII)


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """A time zone by its name or offset.

    Raises:
        EvaluationError: there is none of that name.
    """
    offset = _OFFSET.fullmatch(name)
    if offset and int(offset[2]) < 24 and int(offset[3]) < 60:
        distance = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-distance if offset[1] == "-" else distance)
    try:
        if _ZONE_NAME.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise EvaluationError(f"`{shortened(name)}` is no time zone; write a name such as `Europe/Berlin`")


def in_zone(nanoseconds: int, name: str = "UTC") -> datetime:
    """The wall clock of a zone, to the second."""
    return (_EPOCH + timedelta(seconds=nanoseconds // 10**9)).astimezone(zone(name))


_PARTS: dict[str, tuple[str, Callable[[datetime], int]]] = {
    "getFullYear": ("the year", lambda t: t.year),
    "getMonth": ("the month, January is 0", lambda t: t.month - 1),
    "getDate": ("the day of the month, from 1", lambda t: t.day),
    "getDayOfMonth": ("the day of the month, from 0", lambda t: t.day - 1),
    "getDayOfWeek": ("the day of the week, Sunday is 0", lambda t: t.isoweekday() % 7),
    "getDayOfYear": ("the day of the year, from 0", lambda t: t.timetuple().tm_yday - 1),
    "getHours": ("the hour; of a duration, its whole hours", lambda t: t.hour),
    "getMinutes": ("the minute; of a duration, its whole minutes", lambda t: t.minute),
    "getSeconds": ("the second; of a duration, its whole seconds", lambda t: t.second),
}
_WHOLE = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9}
_BOUNDS: dict[str, Bounds] = {
    "getFullYear": ANY_NUMBER,
    "getMonth": Interval(0, 11),
    "getDate": Interval(1, 31),
    "getDayOfMonth": Interval(0, 30),
    "getDayOfWeek": Interval(0, 6),
    "getDayOfYear": Interval(0, 365),
    "getHours": of_kind(Kind.TIMESTAMP, Interval(0, 23)),
    "getMinutes": of_kind(Kind.TIMESTAMP, Interval(0, 59)),
    "getSeconds": of_kind(Kind.TIMESTAMP, Interval(0, 59)),
}
_MILLISECOND = 10**6


def _reader(part: Callable[[datetime], int]) -> Implementation:
    return lambda nanoseconds, name="UTC": part(in_zone(nanoseconds, name))


def _whole(unit: int) -> Implementation:
    return lambda nanoseconds: divide(nanoseconds, unit)


def _milliseconds(nanoseconds: int, name: str = "UTC") -> int:
    zone(name)
    return nanoseconds % 10**9 // _MILLISECOND


def _parts() -> Iterator[Function]:
    for name, (doc, part) in _PARTS.items():
        overloads = [
            Overload((TIMESTAMP,), INT, _reader(part)),
            Overload((TIMESTAMP, STRING), INT, _reader(part)),
        ]
        if name in _WHOLE:
            overloads.append(Overload((DURATION,), INT, _whole(_WHOLE[name])))
        yield function(
            name, Style.METHOD, doc, *overloads, bounds=_BOUNDS[name], cost=Cost("text"), mutants=[], literals=(1,)
        )


FUNCTIONS: tuple[Function, ...] = (
    *_parts(),
    function(
        "getMilliseconds",
        Style.METHOD,
        "the milliseconds within the second",
        Overload((TIMESTAMP,), INT, _milliseconds),
        Overload((TIMESTAMP, STRING), INT, _milliseconds),
        Overload((DURATION,), INT, lambda nanoseconds: divide(remainder(nanoseconds, 10**9), _MILLISECOND)),
        bounds=Interval(-999, 999),
        cost=Cost("text"),
        mutants=[],
        literals=(1,),
    ),
)
