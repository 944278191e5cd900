"""Functions of strings: CEL's own and those of its common strings extension. Positions count code points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import re2

from policyengine.language.functions.answer_bounds import NO_NUMBER, NOT_NEGATIVE, Interval
from policyengine.language.functions.arithmetic import LONGEST_TEXT
from policyengine.language.functions.table import Cost, Function, Implementation, Style, function, or_optional
from policyengine.language.values import EvaluationError, shortened

_UPPER_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_LOWER_TO_UPPER = {lower: upper for upper, lower in _UPPER_TO_LOWER.items()}
_WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""Unicode's White_Space, which `trim` takes off."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The pattern, compiled by RE2: time linear in the text whatever the pattern. Raises EvaluationError: RE2 does not
    take it."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not understood"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError(f"`{shortened(pattern)}` is not a pattern of RE2: {text}") from None


def char_at(text: str, index: int) -> str:
    """The character at a place; '' right behind the last."""
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index {index} is out of range")
    return text[index : index + 1]


def substring(text: str, start: int, end: int | None = None) -> str:
    """The text from `start` to before `end`."""
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise EvaluationError(f"the range {start} to {end} is out of range")
    return text[start:end]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Where the part first stands at or after `start`; -1 where it does not."""
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index {start} is out of range")
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Where the part last stands at or before `start`; -1 where it does not."""
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index {start} is out of range")
    return text.rfind(part, 0, start + len(part))


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The text with `old` replaced by `new`, at most `limit` times; -1 means all."""
    count = text.count(old) if limit < 0 else min(limit, text.count(old))
    if len(text) + count * (len(new) - len(old)) > LONGEST_TEXT:
        raise EvaluationError("the string grows too long")
    return text.replace(old, new, limit)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """The pieces between separators, at most `limit` of them; -1 means all. '' splits into characters."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, -1 if limit < 0 else limit - 1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def join(items: list[str], separator: str = "") -> str:
    """The items with the separator between them."""
    if sum(map(len, items)) + len(separator) * len(items) > LONGEST_TEXT:
        raise EvaluationError("the string grows too long")
    return separator.join(items)


def trailing_int(text: str) -> int | None:
    """The number at the end of the text: `node9` -> 9; None where there is none, or none that 64 bits hold."""
    digits = text[len(text.rstrip("0123456789")) :]
    number = int(digits) if digits and len(digits) <= LONGEST_NUMBER else -1
    return number if 0 <= number < 2**63 else None


LONGEST_NUMBER = 4000
"""Digits of a number read from text; Python refuses to read more than 4,300."""


def _method(
    name: str, doc: str, compute: Implementation, *signatures: str, mutants: Sequence[str] = (), rank: int | None = None
) -> Function:
    """A method of strings; one that answers an int answers a position, -1 for none."""
    bounds = Interval(-1.0, math.inf) if signatures[0].endswith("-> int") else NO_NUMBER
    overloads = dict.fromkeys(signatures, compute)
    return function(name, Style.METHOD, doc, overloads, bounds=bounds, cost=Cost("text", rank), mutants=mutants)


_TEST = "string, string -> bool"
_FIND = ("string, string -> int", "string, string, int -> int")

FUNCTIONS: tuple[Function, ...] = (
    _method("contains", "whether the text has the part", lambda a, b: b in a, _TEST),
    _method("startsWith", "whether the text begins with the part", str.startswith, _TEST, mutants=["endsWith"]),
    _method("endsWith", "whether the text ends with the part", str.endswith, _TEST, mutants=["startsWith"]),
    function(
        "matches",
        Style.BOTH,
        "whether an RE2 pattern matches anywhere in the text",
        {_TEST: lambda text, pattern: compiled(pattern).search(text) is not None},
        bounds=NO_NUMBER,
        cost=Cost("matches", 40),
        literals=(1,),
    ),
    _method("lowerAscii", "with A..Z as a..z", lambda text: text.translate(_UPPER_TO_LOWER), "string -> string"),
    _method("upperAscii", "with a..z as A..Z", lambda text: text.translate(_LOWER_TO_UPPER), "string -> string"),
    _method("trim", "without white space at its ends", lambda text: text.strip(_WHITE), "string -> string"),
    _method(
        "replace",
        "with a part replaced",
        replace,
        "string, string, string -> string",
        "string, string, string, int -> string",
        rank=20,
    ),
    _method(
        "split",
        "the pieces between separators",
        split,
        "string, string -> list(string)",
        "string, string, int -> list(string)",
        rank=20,
    ),
    _method(
        "substring", "a part, by its start and end", substring, "string, int -> string", "string, int, int -> string"
    ),
    _method("charAt", "the character at a place", char_at, "string, int -> string"),
    _method("indexOf", "where a part first stands, -1 if nowhere", index_of, *_FIND),
    _method("lastIndexOf", "where a part last stands, -1 if nowhere", last_index_of, *_FIND),
    _method(
        "join",
        "the strings of a list, with a separator between them",
        join,
        "list(string) -> string",
        "list(string), string -> string",
        rank=20,
    ),
    function(
        "trailingInt",
        Style.GLOBAL,
        "the number at the end of a string: `node9` has 9",
        or_optional("string -> optional(int)", trailing_int),
        bounds=NOT_NEGATIVE,
        cost=Cost("convert"),
    ),
)
