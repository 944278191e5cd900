"""An HTML page that loads nothing and needs no script; in light and dark, on paper and on a telephone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from policyengine.control_characters import escaped

FEW: Final = 12
"""Rows that are shown without a click."""
_STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --paper: #ffffff; --card: #f6f8fa;
  --old: #b35900; --new: #0a5cad; --good: #17692e; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #a3adb8; --line: #3d444d; --paper: #0d1117;
  --card: #161b22; --old: #f0a04b; --new: #6cb6ff; --good: #56d364; --bad: #ff8f87; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 16px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 22px; margin: 8px 0; } h2 { font-size: 16px; margin: 28px 0 8px; } p { margin: 4px 0; }
.key::before { content: ""; display: inline-block; width: 26px; margin-right: 8px; vertical-align: middle;
  border-top: 3px solid var(--new); } .key.of-old::before { border-top: 3px dashed var(--old); }
.note { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 20px 0; }
.tile, figure { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px; margin: 0; }
.tile b { display: block; font-size: 20px; font-weight: 600; } .tile span { color: var(--soft); }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 12px; }
figcaption { font-weight: 600; margin-bottom: 4px; } svg { display: block; width: 100%; height: auto; }
svg text { font-size: 13px; fill: var(--soft); } .end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
circle { fill: var(--new); }
polyline.old { stroke: var(--old); stroke-dasharray: 6 4; } polyline.new { stroke: var(--new); }
.table { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; } td { overflow-wrap: normal; }
.better { color: var(--good); } .worse { color: var(--bad); font-weight: 600; } summary { cursor: pointer; }
@media print { .tile, figure, tr { break-inside: avoid; } }"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, body: Iterable[str]) -> str:
    """The whole page. `body`: HTML, in which every name is escaped by `text_of`."""
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{text_of(title)}</title><style>{_STYLE}</style></head><body><main>",
        *body,
        "</main></body></html>",
    ]
    return "\n".join(lines) + "\n"


def figures(pictures: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Pictures beside each other: title and SVG of each."""
    yield '<div class="pictures">'
    yield from (f"<figure><figcaption>{text_of(title)}</figcaption>{svg}</figure>" for title, svg in pictures)
    yield "</div>"


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with its title; behind a click where it is long, the figures apart."""
    is_long = len(rows) > FEW and title != "Figures"
    yield f"<h2>{text_of(title)}</h2>"
    yield f"<details><summary>{len(rows)} rows</summary>" if is_long else ""
    heads = "".join(f"<th>{text_of(one)}</th>" for one in headers)
    yield f'<div class="table"><table><thead><tr>{heads}</tr></thead><tbody>'
    yield from (f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    yield "</tbody></table></div>"
    yield "</details>" if is_long else ""


def _cell(text: str) -> str:
    kind = f' class="{text}"' if text in ("better", "worse") else ""
    return f"<td{kind}>{text_of(text)}</td>"


def text_of(text: str) -> str:
    """Text for a page: no markup, no controls."""
    return escape(escaped(text))
