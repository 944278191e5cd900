"""What is said on standard error: one line a message, as text or as JSON, with what it is about in fields.

A message names its subject by `extra=` with the names of `FIELDS`: the pod, the node, the policy and its hash.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

FIELDS = ("pod", "node", "policy", "hash")


class TextLines(logging.Formatter):
    """`14:03:07 INFO    message pod=a/b node=c`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        return super().format(record) + fields


class JsonLines(logging.Formatter):
    """`{"time": …, "level": …, "logger": …, "message": …, "pod": …}`, as log collectors read it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, str] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """What the message is about."""
    return {name: str(value) for name in FIELDS if (value := getattr(record, name, ""))}


def start(level: str = "info", form: str = "text", stream: TextIO | None = None) -> None:
    """Say our own messages from `level` on, and of other packages only what went wrong."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("policyengine").setLevel(level.upper())
