"""The grammar's tables: made by Lark from `grammar/policy.lark`, kept beside it, loaded in a few milliseconds.

Lark proves the grammar LALR(1) and makes its tables in a third of a second, too long for a command that checks
one file. So its tables are kept as `policy.table.json` with the grammar's SHA-256. A table of another grammar is
not used: Lark makes a new one, in memory. `python -m policyengine.language.parsing.grammar` writes it; a test compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from policyengine.language.parsing.terminals import RESERVED

TABLE = "policy.table.json"
STARTS = (
    *("import", "library", "policy", "overlay"),
    *("scheduler", "base", "share", "use", "disable", "param", "let", "function", "queue", "filter", "score"),
    *("gang", "quota", "permit", "preempt", "on", "bind", "test", "expression"),
)
"""The rules that are parsed alone: blocks' heads, members, an expression."""


class Rule(Struct, frozen=True):
    """A production: how many symbols it takes, and what becomes of their values.

    `action` names what builds the value; None hands on the value of the rule's only symbol. `picks` are the
    children's indices, None for an absent optional one. `spliced` are indices whose value is a list, to be
    unfolded among the children.
    """

    origin: str
    size: int
    action: str | None
    picks: tuple[int | None, ...]
    spliced: frozenset[int]
    inlined: bool
    """Whether the value is a list that the rule above unfolds."""
    whole: bool
    """Whether the children are the values of all its symbols, as they are."""


class Table(Struct, frozen=True):
    """The automaton: a row a state, from a terminal to a state to enter, or `~rule` to reduce by."""

    rows: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    starts: Mapping[str, int]
    ends: Mapping[str, int]
    patterns: tuple[tuple[str, str], ...]
    """Terminals that are patterns, the ones to try first in front."""
    words: Mapping[str, str]
    """Contextual keywords and reserved words -> terminal."""
    signs: Mapping[str, str]
    """Operators and brackets -> terminal."""
    keywords: frozenset[str]
    """The terminals of `words`."""
    contextual: frozenset[str]
    """Those that may turn out to be names."""
    end_states: frozenset[int]
    """The values of `ends`."""


def folder() -> Path:
    """Where the grammar lies: in the wheel inside the package, in a checkout beside it."""
    package = Path(__file__).resolve().parent.parent.parent
    inside = package / "grammar"
    return inside if inside.is_dir() else package.parent / "grammar"


@cache
def table() -> Table:
    """The tables of the grammar. Raises FileNotFoundError where the installation lacks the grammar."""
    grammar = (folder() / "policy.lark").read_bytes()
    kept = folder() / TABLE
    if kept.is_file():
        data = json.loads(kept.read_bytes())
        if data["grammar"] == hashlib.sha256(grammar).hexdigest():
            return _table(data)
    return _table(json.loads(compiled(grammar)))


def _table(data: Mapping[str, Any]) -> Table:
    rules = tuple(
        Rule(
            origin,
            size,
            action,
            tuple(picks),
            frozenset(spliced),
            inlined,
            whole=not spliced and picks == list(range(size)),
        )
        for origin, size, action, picks, spliced, inlined in data["rules"]
    )
    rows, gotos = data["rows"], data["gotos"]
    return Table(
        rows=tuple(rows[row] for row, _ in data["states"]),
        gotos=tuple(gotos[goto] for _, goto in data["states"]),
        rules=rules,
        starts=data["starts"],
        ends=data["ends"],
        patterns=tuple((name, pattern) for name, pattern in data["patterns"]),
        words=data["words"],
        signs=data["signs"],
        keywords=frozenset(data["words"].values()),
        contextual=frozenset(data["words"].values()) - RESERVED,
        end_states=frozenset(data["ends"].values()),
    )


# --- making the tables -----------------------------------------------------------------------------------


def compiled(grammar: bytes) -> str:
    """The tables of a grammar as JSON text, always the same for the same grammar.

    Raises:
        lark.exceptions.GrammarError: it is not LALR(1), or a conflict would have to be resolved silently.
    """
    from lark import Lark

    parser = Lark(
        grammar.decode(), parser="lalr", lexer=_no_lexer(), start=list(STARTS), maybe_placeholders=True, strict=True
    )
    found: Any = parser.parser.parser._parse_table  # the tables are Lark's product; it has no public name for them
    terminals = sorted(parser.terminals, key=lambda t: (-t.priority, t.name))
    return _written(found, [(t.name, t.pattern.type, t.pattern.value) for t in terminals], grammar)


def _no_lexer() -> type:
    from lark.lexer import Lexer

    class Tokens(Lexer):
        """Stands in for Lark's lexer: `tokens` cuts the text, by the same terminals."""

        def __init__(self, conf: object) -> None:
            del conf

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            return iter(())

    return Tokens


def _written(found: Any, terminals: list[tuple[str, str, str]], grammar: bytes) -> str:
    numbers = _numbered(found)
    rules: dict[Any, int] = {}
    rows: dict[str, int] = {}
    gotos: dict[str, int] = {}
    states = []
    for state in numbers:
        row, goto = {}, {}
        for symbol, (action, target) in sorted(found.states[state].items()):
            if action.name == "Reduce":
                row[symbol] = ~rules.setdefault(target, len(rules))
            elif symbol.isupper() or symbol.startswith("$"):
                row[symbol] = numbers[target]
            else:
                goto[symbol] = numbers[target]
        texts = json.dumps(row, separators=(",", ":")), json.dumps(goto, separators=(",", ":"))
        states.append([rows.setdefault(texts[0], len(rows)), gotos.setdefault(texts[1], len(gotos))])
    literal = [(name, text) for name, kind, text in terminals if kind == "str"]
    parts = {
        "grammar": json.dumps(hashlib.sha256(grammar).hexdigest()),
        "starts": json.dumps({name: numbers[state] for name, state in sorted(found.start_states.items())}),
        "ends": json.dumps({name: numbers[state] for name, state in sorted(found.end_states.items())}),
        "patterns": _lines(json.dumps([name, text]) for name, kind, text in terminals if kind == "re"),
        "words": json.dumps({text: name for name, text in literal if text.isidentifier()}),
        "signs": json.dumps({text: name for name, text in literal if not text.isidentifier()}),
        "rules": _lines(json.dumps(_rule(rule)) for rule in rules),
        "rows": _lines(rows),
        "gotos": _lines(gotos),
        "states": json.dumps(states, separators=(",", ":")),
    }
    return "{\n" + ",\n".join(f'"{name}": {text}' for name, text in parts.items()) + "\n}\n"


def _numbered(found: Any) -> dict[Any, int]:
    """The states in the order a walk by sorted symbols meets them: Lark's own numbers differ from run to run."""
    numbers: dict[Any, int] = {}
    waiting = [state for _, state in sorted(found.start_states.items())]
    for state in waiting:
        if state not in numbers:
            numbers[state] = len(numbers)
            entered = sorted((symbol, to) for symbol, (act, to) in found.states[state].items() if act.name == "Shift")
            waiting += [to for _, to in entered]
    return numbers


def _lines(texts: Any) -> str:
    return "[\n" + ",\n".join(texts) + "\n]"


def _rule(rule: Any) -> list[object]:
    """A rule of Lark as ours: which symbols are kept (named ones), and where an absent optional stands."""
    options, size = rule.options, len(rule.expansion)
    absent = [0] * (size + 1)
    if options.empty_indices:
        marks = "".join(str(int(mark)) for mark in options.empty_indices)
        absent = [len(ones) for ones in marks.split("0")]
    picks: list[int | None] = []
    for at, symbol in enumerate(rule.expansion):
        picks += [None] * absent[at]
        if not (symbol.is_term and symbol.filter_out):
            picks.append(at)
    picks += [None] * absent[size]
    name = str(rule.origin.name)
    spliced = [at for at, s in enumerate(rule.expansion) if not s.is_term and str(s.name).startswith("_")]
    handed_on = bool(options.expand1) and not rule.alias and picks == [0] and size == 1
    action = None if handed_on else str(rule.alias or name)
    return [name, size, action, picks, spliced, name.startswith("_")]


if __name__ == "__main__":
    text = (folder() / "policy.lark").read_bytes()
    (folder() / TABLE).write_text(compiled(text))
