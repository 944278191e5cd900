"""How the process runs: its event loop, the garbage collector in a process that holds a cluster, and what it logs.

uvloop's event loop halves what asyncio itself takes of a bound pod's CPU (Windows has asyncio's own; tests on virtual
time bring theirs). What a scheduler keeps is freed by reference counts, so looking through all of it for cycles finds
next to nothing: it looks seldom, and never again at what the first lists brought. Log lines go to standard error, as
text or as JSON; a message names its subject by `extra=` with the names of `FIELDS`: the pod, the node, the policy and
its hash.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from policyengine.control_characters import escaped
from policyengine.seldom_collected import collect_seldom

LEVELS = ("debug", "info", "warning", "error")
FIELDS = ("pod", "node", "policy", "hash")


class TextLines(logging.Formatter):
    """`2026-11-23T14:03:07.123Z INFO    message pod=a/b node=c`, then the lines of a traceback, indented: no message
    forges a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = _time(record).replace("+00:00", "Z")
        said = f"{at} {record.levelname:<7} {record.getMessage()}"
        said += "".join(f" {name}={value}" for name, value in fields_of(record).items())
        trace = self.formatException(record.exc_info).splitlines() if record.exc_info else ()
        return "\n    ".join(map(escaped, [said, *trace]))


class JsonLines(logging.Formatter):
    """`{"time": …, "level": …, "logger": …, "message": …, "pod": …}`, as log collectors read it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, str] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return "".join(
            one if one.isprintable() else json.dumps(one)[1:-1] for one in json.dumps(said, ensure_ascii=False)
        )


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """What the message is about."""
    return {name: str(value) for name in FIELDS if (value := getattr(record, name, ""))}


def start_logging(level: str = "info", form: str = "text") -> None:
    """Say our own messages from `level` on, and of other packages only what went wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("policyengine").setLevel(level.upper())


def set_level(text: str) -> str:
    """Say our own messages from another level on: a name, or klog's number, of which 4 and more mean `debug`. Returns
    the name. Raises `ValueError`."""
    level = text.strip().lower()
    if level.isascii() and level.isdecimal():
        level = "debug" if len(level) > 1 or level >= "4" else "info"
    if level not in LEVELS:
        raise ValueError(f"write {', '.join(LEVELS)}, or a number as klog has it")
    logging.getLogger("policyengine").setLevel(level.upper())
    return level


def level() -> str:
    """The least that is said of our own messages."""
    return logging.getLevelName(logging.getLogger("policyengine").getEffectiveLevel()).lower()


T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as `asyncio.run` does."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    return uvloop.run(main)


async def keep_quiet(synced: asyncio.Event) -> None:
    """Look seldom from now on, and leave out all there is once `synced` is set. It is the whole process that does."""
    collect_seldom()
    await synced.wait()
    gc.freeze()
