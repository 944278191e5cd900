"""Ages, spans and labels as `kubectl get` prints them."""

from policyengine.simulator.api_server.decoding.scalars import parse_seconds
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, metadata

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 86400 * 365


def human_duration(seconds: float) -> str:
    """A span as kubectl prints it: two units where the larger is small, one otherwise."""
    if seconds < -2:
        return "<invalid>"
    whole = max(0, int(seconds))
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two(whole // MINUTE, "m", whole % MINUTE, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole // HOUR, "h", whole // MINUTE % 60, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole // DAY, "d", whole // HOUR % 24, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole // YEAR, "y", whole // DAY % 365, "d")
    return f"{whole // YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(stamp: Json, now: float) -> str:
    """How long ago a time was."""
    seconds = parse_seconds(stamp)
    return UNKNOWN if seconds is None else human_duration(now - seconds)


def created(obj: Object, now: float) -> str:
    """An object's age."""
    return age(metadata(obj).get("creationTimestamp"), now)


def labelled(value: Json) -> str:
    """Labels in order, e.g. `a=b,c=d`."""
    pairs = sorted(value.items()) if isinstance(value, dict) else []
    return ",".join(f"{k}={v}" for k, v in pairs) or NONE
