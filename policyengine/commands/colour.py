"""Whether what is printed is coloured: on a terminal, unless `NO_COLOR` is set (no-color.org)."""

from __future__ import annotations

import os
from typing import TextIO


def is_coloured(stream: TextIO) -> bool:
    """Whether text for the stream bears colours. `NO_COLOR=` without a value does not count."""
    return stream.isatty() and not os.environ.get("NO_COLOR")
