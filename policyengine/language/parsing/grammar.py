"""The parser that Lark makes of `grammar/policy.lark`, and the grammar's terminals in groups.

Lark analyses the grammar in half a second, so what it makes is kept in a cache file beside the grammar. The wheel
brings the file along; a checkout writes it on first use.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lark import Lark

STARTS = (
    *("import", "library", "policy", "overlay"),
    *("scheduler", "base", "share", "use", "disable", "param", "let", "function", "queue", "filter", "score"),
    *("gang", "quota", "permit", "preempt", "on", "bind", "test", "expression"),
)
"""The rules that are parsed alone: blocks' heads, members, an expression."""
RESERVED = frozenset({"TRUE", "FALSE", "NULL", "IN"})
"""Words that are never names."""
LITERALS = frozenset({"TRUE", "FALSE", "NULL", "INT", "UINT", "FLOAT", "QUANTITY", "DURATION", "STRING", "BYTES"})
BEGINNINGS = LITERALS | {"NAME", "DOT", "LPAR", "LSQB", "LBRACE", "NOT", "MINUS"}
"""An expression begins with one of these."""
BINARY = frozenset({"OR", "AND", "COMPARISON", "IN", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})
"""Operators between two expressions."""
OPERATORS = BINARY | {"QMARK", "DOT", "LSQB", "LPAR"}
"""Whatever goes on with an expression."""
CLOSING = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
"""Opening brackets, and the text of those that close them."""
OPENING = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}
"""Closing brackets, and the terminals of those that open them."""
_OPTIONS: Final[Mapping[str, Any]] = {"parser": "lalr", "lexer": "basic", "start": list(STARTS)}
"""What Lark is told. Its lexer is not used: `tokens` cuts texts."""


def folder() -> Path:
    """Where the grammar lies: in the wheel inside the package, in a checkout beside it."""
    package = Path(__file__).resolve().parent.parent.parent
    inside = package / "grammar"
    return inside if inside.is_dir() else package.parent / "grammar"


def analysed(grammar: str, strict: bool = False) -> Lark:
    """A parser of a grammar, made without a cache.

    Arguments:
        strict: whether two terminals that match the same text are an error; takes `interegular` and seconds.

    Raises:
        lark.exceptions.GrammarError: the grammar is not LALR(1).
    """
    from lark import Lark

    return Lark(grammar, **_OPTIONS, strict=strict)


def kept(grammar: str, cache_file: Path) -> Lark:
    """The parser of a grammar out of its cache file, which is made anew where it does not fit.

    What the file holds is a pickle: whoever writes it runs code here. So it is read only if this user or root owns it
    and nobody else may write to it. It begins with a digest of the grammar, the options, the versions and the pickle
    itself. It is written whole and then renamed, so that no process sees half of one; where that cannot be, it is done
    without.
    """
    from lark import Lark, __version__

    def digest(pickled: bytes) -> bytes:
        made_by = f"{__version__} {sys.version_info[:2]} {_OPTIONS} {grammar}"
        return sha256(made_by.encode() + pickled).hexdigest().encode()

    with suppress(OSError), cache_file.open("rb") as file:
        first, _, pickled = file.read().partition(b"\n")
        if _is_own(os.fstat(file.fileno())) and first == digest(pickled):
            loaded: Lark = Lark.load(BytesIO(pickled))
            return loaded
    made, out = analysed(grammar), BytesIO()
    made.save(out)
    draft = cache_file.with_name(f".{cache_file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as written:
            written.write(digest(out.getvalue()) + b"\n" + out.getvalue())
        draft.replace(cache_file)
    except OSError:
        with suppress(OSError):
            draft.unlink()
    return made


def _is_own(found: os.stat_result) -> bool:
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    is_private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(found.st_mode) and found.st_uid in (0, user) and is_private


@cache
def parser() -> Lark:
    """The parser of policies. Raises FileNotFoundError where the installation lacks the grammar."""
    here = folder()
    name = f"policy.{sys.version_info.major}{sys.version_info.minor}.cache"
    return kept((here / "policy.lark").read_text(encoding="utf-8"), here / name)


@cache
def patterns() -> Mapping[str, str]:
    """Terminals that are patterns, with their regular expressions; the ones to try first in front."""
    ordered = sorted(parser().terminals, key=lambda terminal: (-terminal.priority, terminal.name))
    return {terminal.name: terminal.pattern.value for terminal in ordered if terminal.pattern.type == "re"}


@cache
def word_terminals() -> Mapping[str, str]:
    """Contextual keywords and reserved words -> terminal."""
    return {one.pattern.value: one.name for one in parser().terminals if one.pattern.value.isalpha()}


@cache
def sign_terminals() -> Mapping[str, str]:
    """Operators and brackets -> terminal."""
    literal = (one for one in parser().terminals if one.pattern.type == "str")
    return {one.pattern.value: one.name for one in literal if not one.pattern.value.isalpha()}


@cache
def keyword_terminals() -> frozenset[str]:
    """The terminals of `word_terminals`."""
    return frozenset(word_terminals().values())
