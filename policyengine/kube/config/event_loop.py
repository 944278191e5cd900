"""The event loop that commands run on: uvloop's where it is installed, asyncio's own elsewhere (Windows).

uvloop halves what asyncio itself takes of a bound pod's CPU. Tests on virtual time bring their own loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as `asyncio.run` does."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    return uvloop.run(main)
