"""The parser that Lark makes of `grammar/policy.lark`, and the grammar's terminals in groups.

Lark analyses the grammar in half a second, so what it makes is kept in a cache file beside the grammar. The wheel
brings the file along; a checkout writes it on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from policyengine import cache_file

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


def kept(grammar: str, file: Path) -> Lark:
    """The parser of a grammar out of its cache file, which is made anew where it does not fit."""
    from lark import Lark, __version__

    made_from = f"{__version__} {sys.version_info[:2]} {_OPTIONS} {grammar}"
    pickled = cache_file.read(file, made_from)
    if pickled is not None:
        loaded: Lark = Lark.load(BytesIO(pickled))
        return loaded
    made, out = analysed(grammar), BytesIO()
    made.save(out)
    cache_file.write(file, made_from, out.getvalue())
    return made


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
