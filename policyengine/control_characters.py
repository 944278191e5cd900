"""Text of other people, such as names and messages, on one line of a terminal or a log: controls are shown as escapes.

What Python does not call printable becomes the escape that Python writes for it. A line break could forge a line, ESC
moves the cursor, a mark for right-to-left text changes the order in which others are read, and half of a surrogate pair
cannot be written at all.

    escaped("a\\nb\\x1b[2J") == "a\\\\nb\\\\x1b[2J"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """The text with every character that is not printable as `\\n`, `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def escaped_lines(text: str) -> str:
    """The same for a text of several lines: its line feeds stay."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped_values(value: Any) -> Any:
    """The same for every text in JSON data, keys of objects included."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return {escaped(key): escaped_values(inner) for key, inner in value.items()}
    return [escaped_values(inner) for inner in value] if isinstance(value, list | tuple) else value


def xml_text(text: str) -> str:
    """The text without what XML 1.0 has no way to write."""
    return _NOT_XML.sub("\ufffd", text)
