"""Templates to HTML. Every value is escaped for HTML, and what is not printable in it is shown as an escape."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from policyengine.control_characters import escaped, escaped_lines

LIVE: Final = "live_"
"""What the names of those blocks begin with that are sent again when they change."""
BUILT: Final = "static/built/playground.js"
_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def page(template: str, context: Mapping[str, Any]) -> str:
    """A whole page."""
    return environment().get_template(template).render(context)


def live_parts(template: str, context: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a page that may change while it is looked at, by the id of their element."""
    found = environment().get_template(template)
    shared = found.new_context(dict(context))
    return {
        name.removeprefix(LIVE): "".join(block(shared)) for name, block in found.blocks.items() if name.startswith(LIVE)
    }


def is_built() -> bool:
    """Whether `make web` has made what browsers run."""
    return files("policyengine.server.pages").joinpath(BUILT).is_file()


@cache
def environment() -> Environment:
    """The one environment of all templates."""
    made = Environment(
        loader=PackageLoader("policyengine.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "amount": amount,
        "seconds": seconds,
        "clock": clock_time,
        "lines": lambda text: Markup("<br>").join(escaped_lines(text).split("\n")),
        "segment": lambda name: quote(name, safe="", errors="replace"),
        "count": lambda number: f"{number:,}",
    }
    # Not imported by each template: a block that is rendered by itself has none of its template's imports.
    made.globals |= vars(made.get_template("parts.html").module)
    return made


def _printable(value: object) -> object:
    return escaped(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def amount(value: float, resource: str) -> str:
    """An amount of a resource as people say it: millicores of cpu, else whole units."""
    if resource == "cpu":
        return f"{value / 1000:,.3g}" if abs(value) < 1e6 else f"{value / 1000:,.0f}"
    if resource not in ("memory", "ephemeral-storage") and not resource.startswith("hugepages-"):
        return f"{value:,}"
    number, unit = float(value), 0
    while abs(number) >= 1024 and unit < len(_BINARY) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.3g} {_BINARY[unit]}" if abs(number) < 1000 else f"{number:.0f} {_BINARY[unit]}"


def seconds(value: float | None) -> str:
    """A length of time in its two largest units: `3 d 4 h`, `12 s`, `80 ms`; – for none."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{max(0.0, value) * 1000:.0f} ms"
    if value < 10:
        return f"{value:.1f} s"
    whole = int(value)
    said: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if whole >= size or said:
            said.append(f"{whole // size} {unit}")
            whole %= size
    return " ".join(said[:2])


def clock_time(at: float | None) -> str:
    """A moment (seconds since the epoch) in UTC; – for none."""
    if not at:
        return "–"
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    except (OverflowError, ValueError, OSError):
        return "–"
