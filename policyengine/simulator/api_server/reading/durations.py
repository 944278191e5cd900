"""Spans of time as Go writes them in a query: `1m30s`, `500ms`."""

import re

_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds; raises ValueError in the words of Go's `time.ParseDuration`."""
    bare = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if bare == "0":
        return 0.0
    seconds, at = 0.0, 0
    while at < len(bare):
        part = _PART.match(bare, at)
        if part is None:
            break
        seconds += float(part.group(1)) * _UNITS[part.group(2)]
        at = part.end()
    if not bare or at < len(bare):
        unitless = bool(re.fullmatch(r"[\d.]+", bare))
        raise ValueError(f'time: {"missing unit in" if unitless else "invalid"} duration "{text}"')
    return -seconds if text.startswith("-") else seconds
