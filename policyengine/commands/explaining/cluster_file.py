"""A cluster in a file: JSON, or YAML as data from outside, of one document or several."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from policyengine.commands.options import UnusableInput, cannot_read
from policyengine.regular_file import read, read_stream

_LARGEST: Final = 1 << 30
"""Bytes of a dump in JSON: 100,000 pods."""
_LARGEST_YAML: Final = 64 << 20
"""Bytes of one in YAML, which takes twenty times as long to read, and as much memory."""
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""Of characters beyond U+FFFF, which JSON writes as two escapes."""


def read_cluster(path: Path) -> Any:
    """The file's content, several documents as one List. Not everything that can be read is a cluster.

    Raises:
        UnusableInput: it cannot be read, or is neither JSON nor YAML.
    """
    try:
        raw = read_stream(sys.stdin.buffer, _LARGEST) if str(path) == "-" else read(path, _LARGEST)
    except OSError as error:
        raise cannot_read(path, error) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableInput(f"`{path}` is not UTF-8: byte {error.start} is `0x{raw[error.start]:02x}`") from None
    if not text.strip():
        raise UnusableInput(f"`{path}` is empty; did the command that printed it fail?")
    found = _json(path, text, raw) if text.lstrip()[0] in "{[" else _yaml(path, text)
    return found[0] if len(found) == 1 else {"kind": "List", "items": found}


def _json(path: Path, text: str, raw: bytes) -> list[Any]:
    """The values, one after another."""
    decoder, found, at = json.JSONDecoder(parse_int=_int64), [], 0
    try:
        while (at := _next(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        if _HALVES.search(raw):
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if not text[error.pos :].strip() or "Unterminated string" in error.msg:
            raise UnusableInput(f"`{path}` is cut off, in {where}: print it again") from None
        raise UnusableInput(f"`{path}` is not JSON: {where}: {error.msg.lower()}") from None
    except UnicodeEncodeError:
        raise UnusableInput(
            f"`{path}` has half a character: `\\ud800` to `\\udfff`, alone; write a whole one"
        ) from None
    except RecursionError:
        raise UnusableInput(f"`{path}` is nested too deeply to be a cluster") from None
    except ValueError:
        raise UnusableInput(f"`{path}` has a whole number beyond 64 bits, which no field of an object takes") from None
    return found


_SPACE = re.compile(r"[ \t\r\n]*")


def _next(text: str, at: int) -> int:
    """Where the next value begins."""
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _int64(text: str) -> int:
    number = int(text)  # raises ValueError for thousands of digits
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _yaml(path: Path, text: str) -> list[Any]:
    """The documents that hold something."""
    from policyengine.plain_yaml import PlainYamlError, documents, plain  # a tenth of a second, and most are JSON

    if len(text) > _LARGEST_YAML:
        raise UnusableInput(
            f"`{path}` has more than {_LARGEST_YAML >> 20} MiB of YAML; print it with `-o json`, which is read faster"
        )
    try:
        found = [plain(document) for document in documents(text)]
    except PlainYamlError as error:
        raise UnusableInput(f"`{path}` {error}") from None
    found = [document for document in found if document is not None]
    if not found:
        raise UnusableInput(f"`{path}` holds nothing; did the command that printed it fail?")
    return found
