"""What is no token: the message, the fix, and the token that was meant.

Patterns of things people type that the language has not: glued numbers (`1h30min`), other languages' operators,
typographic quotes, strings left open, characters from nowhere.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from policyengine.language.diagnostics import Diagnostic, Edit, Fix, replacing
from policyengine.language.parsing.literal_values import MAX_WORD
from policyengine.language.syntax import Span
from policyengine.language.syntax_codes import quoted, syntax_error

_MEANT = {
    "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", ":=": "=", "&": "&&", "|": "||",
    "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "–": "-", "×": "*", "÷": "/", "∧": "&&", "∨": "||", "¬": "!",
}  # fmt: skip
_KINDS = {"==": "COMPARISON", "!=": "COMPARISON", "<=": "COMPARISON", ">=": "COMPARISON", "=": "EQUAL", "&&": "AND"}
_KINDS |= {",": "COMMA", ":": "COLON", "||": "OR", "-": "MINUS", "*": "STAR", "/": "SLASH", "!": "NOT"}
ODD_SIGN = r"=~|!~|->|===|!==|<>|=<|=>|:=|;+|&(?!&)|\|(?!\|)|[≤≥≠−–×÷∧∨¬]"

UNREADABLE = (
    ("BAD_NUMBER", r"[0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?|\.[0-9][A-Za-z0-9_]*"),
    ("OPEN_STRING", r"[bB]?[rR]?(?:\"\"\"|'''|\"|')"),
    ("CURLY_QUOTE", r"[“”„‟«»‘’‚‛]"),
    ("BLANK", r"[\u00a0\u00ad\u1680\u2000-\u200f\u2028\u2029\u202a-\u202f\u205f-\u2064\u3000]+"),
    ("STRANGE", r"[^\x00-\x7f]+|[\s\S]"),
)
MENDED = frozenset({"ODD_SIGN", *(name for name, _ in UNREADABLE)})

_OTHER_UNITS = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "mins": "min",
    "hour": "h", "hours": "h", "hr": "h", "hrs": "h", "day": "d", "days": "d", "msec": "ms", "millis": "ms",
    "kb": "k", "mb": "M", "gb": "G", "tb": "T", "pb": "P", "g": "G", "t": "T", "p": "P",
    "ki": "Ki", "mi": "Mi", "gi": "Gi", "ti": "Ti", "pi": "Pi", "ei": "Ei",
    "kib": "Ki", "mib": "Mi", "gib": "Gi", "tib": "Ti", "pib": "Pi", "eib": "Ei",
}  # fmt: skip
_MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS = "quantities end in m k M G T P Ki Mi Gi Ti Pi Ei, durations in ms s min h d"


class Mended(NamedTuple):
    """The token to put in the place of what was found, up to `end`; kind '' puts none."""

    kind: str
    text: str
    end: int
    finding: Diagnostic


def mend(kind: str, found: str, text: str, file: str, start: int, end: int, limit: int) -> Mended:
    """What stands for `found`, which begins at `start`; `limit` is where the text to read ends."""
    if kind == "ODD_SIGN":
        return _odd_sign(found, text, file, Span(start, end))
    if kind == "BAD_NUMBER":
        message, instead = _number_advice(found)
        fix = replacing(Span(start, end), instead) if instead else None
        return Mended("INT", "1", end, syntax_error("PE0201", message, file, Span(start, end), fix))
    if kind == "OPEN_STRING":
        return _open_string(found, text, file, start, limit)
    if kind == "CURLY_QUOTE":
        return _curly_quotes(text, file, start, limit)
    return _strange(kind, found, file, Span(start, end))


_LAMBDA = re.compile(r"\.\w+\(\s*[A-Za-z_]\w*\s*")
_NAMED = re.compile(r"(?:let\s+\w+|param\s+\w+\s*:[^=\n]*|weight\s+\w+|normalize\s+\w+|reverse)\s*")
_RESULT = re.compile(r"function\s+\w+\([^()\n]*\)\s*")
_LONGEST_BEFORE = 100


def _behind(pattern: re.Pattern[str], text: str, end: int) -> bool:
    """Whether what stands before an offset ends so."""
    before = text[max(0, end - _LONGEST_BEFORE) : end]
    return any(found.end() == len(before) for found in pattern.finditer(before))


def _arrow(found: str, text: str, start: int) -> tuple[str, str]:
    """What `=>` or `->` is meant to be where it stands, and why, '' for `>=`."""
    if _behind(_LAMBDA, text, start):
        return ",", "behind the variable of a macro stands `,`: `.all(x, …)`"
    if _behind(_RESULT, text, start):
        return ":", "the type that a function gives stands behind `:`"
    if _behind(_NAMED, text, start):
        return "=", f"`{found}` gives nothing a value; write `=`"
    return ">=" if found == "=>" else "", ""


def _odd_sign(found: str, text: str, file: str, span: Span) -> Mended:
    if found.startswith(";"):
        fix = Fix("remove it", (Edit(span, ""),))
        message = "`;` ends nothing here: every member starts with its keyword"
        return Mended("", "", span.end, syntax_error("PE0104", message, file, span, fix))
    if found[1:] == "~":
        message = f'`{found}` is no operator; write `{"!" * (found[0] == "!")}a.matches("^pattern$")`'
        return Mended("COMPARISON", "==", span.end, syntax_error("PE0105", message, file, span))
    meant, why = _arrow(found, text, span.start) if found in ("=>", "->") else (_MEANT[found], "")
    if not meant:
        message = f"`{found}` is no operator; a field stands behind `.`"
        return Mended("UNREADABLE", found, span.end, syntax_error("PE0105", message, file, span))
    start = len(text[: span.start].rstrip()) if meant == "," else span.start
    fix = Fix(f"write `{meant}`", (Edit(Span(start, span.end), meant),), safe=found != "=>" or meant != ">=")
    finding = syntax_error("PE0105", why or f"`{found}` is no operator; write `{meant}`", file, span, fix)
    return Mended(_KINDS[meant], meant, span.end, finding)


def _number_advice(found: str) -> tuple[str, str]:
    """The message about a number that runs into letters, and what to write instead, '' where nobody can tell."""
    shown = quoted(found)
    if len(found) > MAX_WORD:
        return f"{shown} is no number", ""
    if total := _compound(found):
        return f"{shown} runs two durations together; write `{total}`", total
    if re.fullmatch(r"[0-9_.]+", found):
        plain = found.replace("_", "")
        return f"{shown} has `_` in a number; write {quoted(plain)}", plain
    if re.match(r"0[xX]", found):
        return f"{shown} is no hexadecimal number: its digits are 0-9 and a-f, after `0x`", ""
    if re.fullmatch(r"[0-9.]+[eE]", found):
        if found.endswith("E"):
            return f"`E` is no suffix, as `1E+5` is a number; write {quoted(found[:-1] + 'Ei')} or an exponent", ""
        return f"{shown} is no number: its exponent has no digits", ""
    number, suffix = re.fullmatch(r"([0-9]*\.?[0-9]+)(.*)", found, re.DOTALL).groups()  # type: ignore[union-attr]
    if suffix == "B":
        return f"{shown} has a unit the language does not know; bytes are plain numbers: {quoted(number)}", number
    if unit := _OTHER_UNITS.get(suffix.lower()) or ("k" if suffix == "K" else ""):
        return f"{quoted(suffix)} is no suffix of a number; write {quoted(number + unit)}", number + unit
    return f"{shown} is no number: {quoted(suffix)} is no suffix ({_UNITS})", ""


def _compound(found: str) -> str:
    """`1h30min` in its smallest unit, `90min`; '' for anything else."""
    if len(found) > 30 or not re.fullmatch(r"(?:[0-9]+(?:ms|min|s|m|h|d)){2,}", found):
        return ""
    parts = re.findall(r"([0-9]+)(ms|min|s|m|h|d)", found)
    total = sum(int(number) * _MILLISECONDS[unit] for number, unit in parts)
    smallest = min((unit for _, unit in parts), key=lambda unit: _MILLISECONDS[unit])
    return f"{total // _MILLISECONDS[smallest]}{'min' if smallest == 'm' else smallest}"


_RESUME = re.compile(
    r"\n[ \t]*(?:(?:filter|score|gang|quota|permit|test|policy|library|overlay|scheduler|import)[ \t]+[\"']"
    r"|(?:let|param)[ \t]+\w+[ \t]*[:=]|(?:queue|preempt|bind)[ \t]*\{)"
)


def _open_string(found: str, text: str, file: str, start: int, limit: int) -> Mended:
    """A string without its closing quote: what looks like the code behind it is read as code."""
    quote = found.lstrip("bBrR")
    if len(quote) == 3:
        resumed = _RESUME.search(text, start, limit)
        end = resumed.start() if resumed else limit
    else:
        line = re.compile(r"[^\r\n]*").match(text, start, limit)
        end = start + len(_quoted_part(line[0] if line else ""))
    end = max(end, start + len(found))
    message = f"the string that begins here has no closing `{quote}`"
    if len(quote) == 1:
        message += " on its line"
    finding = syntax_error("PE0203", message, file, Span(start, end))
    return Mended("STRING", f"{quote[0]}{quote[0]}", end, finding)


def _quoted_part(line: str) -> str:
    """What of a line was probably meant to stand in quotes: not a `{` that stands alone, nor brackets at the end."""
    code = re.search(r"\s\{(?:\s|$)", line)
    return (line[: code.start()] if code else line).rstrip(" \t(){}[],")


def _curly_quotes(text: str, file: str, start: int, limit: int) -> Mended:
    closed = re.compile(r"[“”„‟«»‘’‚‛]([^“”„‟«»‘’‚‛\"\r\n\\]*)[“”„‟«»‘’‚‛\"]").match(text, start, limit)
    if closed is None:
        message = f"`{text[start]}` is no quote; strings stand in `\"` or `'`"
        return Mended("", "", start + 1, syntax_error("PE0205", message, file, Span(start, start + 1)))
    straight = f'"{closed[1]}"'
    span = Span(start, closed.end())
    fix = Fix("use straight quotes", (Edit(span, straight),))
    message = 'typographic quotes do not make a string; write `"`'
    return Mended("STRING", straight, span.end, syntax_error("PE0205", message, file, span, fix))


def _strange(kind: str, found: str, file: str, span: Span) -> Mended:
    name = f"U+{ord(found[0]):04X}"
    if kind == "BLANK":
        fix = Fix("write a space", (Edit(span, " "),))
        message = f"an invisible character, {name}, stands here; write a space"
        return Mended("", "", span.end, syntax_error("PE0105", message, file, span, fix))
    shown = quoted(found) if found.isprintable() and found != "`" else name
    hint = ": names are made of ASCII letters, digits and `_`" if found[0].isalpha() else ""
    finding = syntax_error("PE0105", f"{shown} has no meaning in the language{hint}", file, span)
    return Mended("UNREADABLE", found, span.end, finding)
