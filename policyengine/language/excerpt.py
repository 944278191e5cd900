"""One line of a source text as a terminal shows it, with marks below the part that is meant.

Terminals differ from strings: a tab is several columns, a wide character two, a combining one none, and a
control character does something. The text is not ours, so nothing of it may act on the terminal.
"""

from __future__ import annotations

import unicodedata

TAB = 4
WIDTH = 120
"""A longer line is cut to this many columns around the marks."""
_BEFORE = 40
_INVISIBLE = {"Mn", "Me"}
_ACTIVE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str) -> str:
    """The text on one line, with what a terminal would act on, or not show, replaced by `�`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character)[0] for character in text)


def excerpt(line: str, start: int, end: int, mark: str = "^") -> tuple[str, str]:
    """A line and the marks to put below it, cut around them where the line is long.

    Arguments:
        start, end: character offsets in the line; they may lie outside (a span over several lines). Leading
            white space of a continued line is not marked; an empty or outside range gets one mark.
    """
    if start < 0:
        start = len(line) - len(line.lstrip())
    end = min(max(end, start + 1), max(len(line), start + 1))
    cut_left = max(0, start - _BEFORE) if len(line) > WIDTH else 0
    cut_right = min(len(line), cut_left + WIDTH)
    shown, marks, columns = [], [], 0
    if cut_left:
        shown, marks = ["…"], [" "]
    for at in range(cut_left, max(cut_right, start + 1)):
        text, width = _shown(line[at]) if at < len(line) else (" ", 1)
        columns += width
        shown.append(text)
        marks.append((mark if start <= at < end else " ") * width)
    if cut_right < len(line):
        shown.append("…")
    below = "".join(marks).rstrip()
    return "".join(shown).rstrip(), below or mark


def _shown(character: str) -> tuple[str, int]:
    """What stands for a character on a terminal, and how many columns it takes."""
    if " " <= character <= "~":
        return character, 1
    if character == "\t":
        return " " * TAB, TAB
    category = unicodedata.category(character)
    if category in _ACTIVE:
        return "�", 1
    if category in _INVISIBLE:
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1
