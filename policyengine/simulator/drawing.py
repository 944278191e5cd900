"""What the project's pictures share: an SVG document without a library, panels with a grid, a legend, ticks.

A picture reads in light and dark: it has no background, its ink is a grey with enough contrast on white and on black,
and where the viewer prefers dark, CSS in the picture lightens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 920, 64, 20
PLOT = WIDTH - LEFT - RIGHT
COLOURS = ("#1f77b4", "#d9730d", "#2e9e5b", "#a24fc4")
"""Of lines, in order."""
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #6e7781; } .title { font-size: 15px; font-weight: 600; }
.grid { stroke: #8c959f; stroke-opacity: .35; } .axis { stroke: #8c959f; } .end { text-anchor: end; }
.middle { text-anchor: middle; } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) { text { fill: #b6bec8; } .line { filter: brightness(1.35); } }"""

Tick = tuple[float, str]
"""A value and what stands beside it."""


def document(title: str, height: int, parts: Iterable[str]) -> str:
    """A whole picture of `WIDTH` by `height` pixels."""
    title = escape(title, {'"': "&quot;"})
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="24">{title}</text>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def rule(top: float, height: float, share: float, label: str, left: float = LEFT, width: float = PLOT) -> Iterator[str]:
    """A horizontal line of the grid at a share of a panel's height, the axis itself at 0, and its label."""
    y = top + height * (1 - share)
    kind = "grid" if share else "axis"
    yield f'<line class="{kind}" x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}"/>'
    yield f'<text class="end" x="{left - 8}" y="{y + 4:.1f}">{label}</text>'


def tick(x: float, y: float, label: str) -> Iterator[str]:
    """A mark below a panel, and what it means."""
    yield f'<line class="axis" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}"/>'
    yield f'<text class="middle" x="{x:.1f}" y="{y + 20}">{label}</text>'


def legend(top: float, names: Iterable[tuple[str, str]], left: float = LEFT) -> Iterator[str]:
    """(name, colour) side by side above a panel."""
    x = left
    for name, colour in names:
        yield f'<rect x="{x}" y="{top - 19}" width="10" height="10" rx="2" fill="{colour}"/>'
        yield f'<text x="{x + 15}" y="{top - 10}">{escape(name)}</text>'
        x += 40 + 7 * len(name)


def polyline(colour: str, points: str, more: str = "") -> str:
    """A line through points `x,y x,y …`."""
    return f'<polyline class="line" stroke="{colour}" points="{points}"{more}/>'


def round_ticks(most: float, count: int = 4) -> list[int]:
    """From 0 up to the first round number that is not below `most`, in steps of 1, 2 or 5 times a power of ten."""
    step = next(base * 10**power for power in range(12) for base in (1, 2, 5) if base * 10**power * count >= most)
    return list(range(0, max(step, -(-int(most) // step) * step) + 1, step))


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle with scales, in pixels; `x` and `y` say which share of its width and height a value is at."""

    left: float
    top: float
    width: float
    height: float
    x: Callable[[float], float]
    y: Callable[[float], float]

    def frame(self, title: str, below: Sequence[Tick], beside: Sequence[Tick], under: str = "") -> Iterator[str]:
        """Grid, ticks and names."""
        yield f'<text x="{self.left}" y="{self.top - 30}">{escape(title)}</text>'
        for value, label in beside:
            yield from rule(self.top, self.height, self.y(value), label, self.left, self.width)
        for value, label in below:
            yield from tick(self.left + self.width * self.x(value), self.top + self.height, label)
        if under:
            middle = self.left + self.width / 2
            yield f'<text class="middle" x="{middle:.1f}" y="{self.top + self.height + 38}">{escape(under)}</text>'

    def line(self, colour: str, points: Iterable[tuple[float, float]], dashed: bool = False) -> str:
        """A line through values."""
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.at, points))
        return polyline(colour, drawn, ' stroke-dasharray="5 4"' if dashed else "")

    def dots(self, colour: str, points: Iterable[tuple[float, float]]) -> Iterator[str]:
        """A dot at each of some values."""
        for x, y in map(self.at, points):
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """The pixel of a pair of values."""
        return self.left + self.width * self.x(point[0]), self.top + self.height * (1 - self.y(point[1]))
