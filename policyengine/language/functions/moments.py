"""`getHours`, `getMonth`, …: parts of a timestamp in a time zone, and of a duration.

Zones are names of the IANA database, or offsets such as `+01:00`; UTC by default. Days and months count from 0
where CEL counts them so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from policyengine.language.functions.answer_bounds import ANY_NUMBER, Bounds, Interval, of_kind
from policyengine.language.functions.arithmetic import divide, remainder
from policyengine.language.functions.table import Cost, Function, Implementation, Signatures, Style, function
from policyengine.language.types import Kind
from policyengine.language.values import EvaluationError, shortened

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", re.ASCII)


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """A time zone by its name or offset. Raises EvaluationError: there is none of that name."""
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


def _part(
    name: str, doc: str, bounds: Bounds, of_time: Implementation, of_duration: Implementation | None = None
) -> Function:
    overloads: Signatures = {"timestamp -> int": of_time, "timestamp, string -> int": of_time}
    if of_duration is not None:
        overloads = {**overloads, "duration -> int": of_duration}
    return function(name, Style.METHOD, doc, overloads, bounds=bounds, cost=Cost("text"), literals=(1,))


def _date(name: str, doc: str, bounds: Bounds, part: Callable[[datetime], int]) -> Function:
    return _part(name, doc, bounds, lambda nanoseconds, zone="UTC": part(in_zone(nanoseconds, zone)))


def _clock(name: str, word: str, most: int, unit: int) -> Function:
    """A part of the time of day; of a duration, how many whole ones it has."""
    return _part(
        name,
        f"the {word}; of a duration, its whole {word}s",
        of_kind(Kind.TIMESTAMP, Interval(0, most)),
        lambda nanoseconds, zone="UTC": getattr(in_zone(nanoseconds, zone), word),
        lambda nanoseconds: divide(nanoseconds, unit * 10**9),
    )


def _milliseconds(nanoseconds: int, name: str = "UTC") -> int:
    zone(name)
    return nanoseconds % 10**9 // _MILLISECOND


_MILLISECOND = 10**6
FUNCTIONS: tuple[Function, ...] = (
    _date("getFullYear", "the year", ANY_NUMBER, lambda t: t.year),
    _date("getMonth", "the month, January is 0", Interval(0, 11), lambda t: t.month - 1),
    _date("getDate", "the day of the month, from 1", Interval(1, 31), lambda t: t.day),
    _date("getDayOfMonth", "the day of the month, from 0", Interval(0, 30), lambda t: t.day - 1),
    _date("getDayOfWeek", "the day of the week, Sunday is 0", Interval(0, 6), lambda t: t.isoweekday() % 7),
    _date("getDayOfYear", "the day of the year, from 0", Interval(0, 365), lambda t: t.timetuple().tm_yday - 1),
    _clock("getHours", "hour", 23, 3600),
    _clock("getMinutes", "minute", 59, 60),
    _clock("getSeconds", "second", 59, 1),
    _part(
        "getMilliseconds",
        "the milliseconds within the second",
        Interval(-999, 999),
        _milliseconds,
        lambda nanoseconds: divide(remainder(nanoseconds, 10**9), _MILLISECOND),
    ),
)
