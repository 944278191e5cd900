"""The codes of syntax findings: `PE01xx` structure, `02xx` literals, `03xx` fields, `04xx` limits; their pages."""

from __future__ import annotations

from policyengine.language.diagnostics import Diagnostic, Fix, Related, Severity, pages_of, printable, register
from policyengine.language.syntax import Span

_QUOTED = 40

_PAGES = """\
PE0101 something else was expected here
The text does not fit the grammar at this place. The message names what was found and what could have stood there. \
Often the mistake is just before it: a missing comma, operator or keyword.

PE0102 `=` used to compare
`=` gives a name or a rule its value; `==` compares. Write `pod.namespace == "prod"`.

PE0103 a word used as an operator
The logical operators are `&&`, `||` and `!`, as in CEL; the words `and`, `or`, `not` and `is` are names.

PE0104 a statement terminator
Members and fields end where the next one begins: each starts with its keyword. There is nothing for `;` to end. \
Remove it.

PE0105 a character or operator without a meaning
The character is none of the language's, or an operator of another language (`===`, `<>`, `≤`), or an invisible one \
that came along with copied text. The message says what to write instead.

PE0106 a bracket that is never closed
Every `(`, `[` and `{` needs its closing bracket before the member ends. A member that starts on a line of its own \
ends the one before it, whatever is still open.

PE0107 a closing bracket that closes nothing
The bracket has no opening one, or another one was opened last. Remove it, or open it.

PE0108 a member or rule the language does not know
A member starts with its keyword: scheduler, base, share, use, disable, param, let, function, queue, filter, score, \
gang, quota, permit, preempt, on, bind, test; a file holds import, library, policy and overlay.

PE0109 a member in the wrong place
A file holds imports, libraries, policies and overlays. A library holds params, lets and functions. An overlay holds \
params, lets, functions, filters, scores, quotas and tests. Everything else belongs into a policy.

PE0110 a file without a policy
The file holds comments or nothing readable: no `policy`, `library`, `overlay` or `import`.

PE0111 a message literal
CEL's `Type{field: value}` builds protobuf messages, which policies have not. A map is written `{"field": value}`.

PE0201 a number that runs into letters
A number ends where a letter begins, unless the letters are a suffix: m k M G T P Ki Mi Gi Ti Pi Ei for quantities, \
ms s min h d for durations. `1h30min` is written `90min` or `1h + 30min`.

PE0202 a number too large
Integers have 64 bits: from -9223372036854775808 to 9223372036854775807. A double is at most about 1.8e308.

PE0203 a string without its closing quote
A string in single or double quotes ends on its line; one in three quotes may go on over several.

PE0204 an escape the language does not know
Escapes are those of CEL: \\a \\b \\f \\n \\r \\t \\v \\\\ \\? \\" \\' \\`, \\xHH, \\XHH, \\uHHHH, \\UHHHHHHHH and \
three octal digits. A raw string, r"…", has none: use it for patterns.

PE0205 typographic quotes
Word processors turn quotes into “these”. Strings stand in straight ones, `"` or `'`.

PE0206 a brace in a message that fits nothing
In `else`, `log` and annotation strings `{expr}` is filled in. A brace that is meant itself is doubled: `{{` and \
`}}`.

PE0207 a name with a character that does not show
Names are shown in tables, logs and events, and compared by eye: they hold no control character, no line end, no \
direction mark and nothing else without a width. Write the name anew, without it.

PE0301 a field the member does not have
The message lists the fields there are.

PE0302 a field given twice
A field has one value. Remove one of the two.

PE0303 a field's value of the wrong form
`guarantee` and `limit` take a map of resources, `{cpu: 4, memory: 8Gi}`; `annotations` takes a map from keys to \
strings.

PE0401 nested too deeply
An expression may be 64 levels deep: brackets, operators of a chain, conditions in conditions. Give parts of it \
names with `let`, or ask with `in` whether a value is in a list.

PE0402 a text too long
A file has at most 30,000 words, signs and comments, so that reading it takes well under a second. Split it; \
`import` puts libraries together.

PE0404 too many mistakes
The first hundred mistakes of a file are shown. What comes behind them often follows from them.

PE0403 a literal too long
A string has at most 10,000 characters, a name or number at most 250.
"""
SYNTAX_CODES = pages_of(_PAGES)
register(SYNTAX_CODES)


def syntax_error(
    code: str, message: str, file: str, span: Span, fix: Fix | None = None, related: tuple[Related, ...] = ()
) -> Diagnostic:
    """An error about syntax; its code is one of `SYNTAX_CODES`."""
    assert code in SYNTAX_CODES
    return Diagnostic(code, Severity.ERROR, message, file, span, fix, related)


def quoted(text: str) -> str:
    """The user's own text in backticks, on one line and not too long."""
    shown = printable(text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…")
    return f"`{shown}`"
