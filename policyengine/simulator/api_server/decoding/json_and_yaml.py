"""JSON as the real server reads it: what it takes that is not quite JSON, and how it words what it does not.

Bytes in strings that are no UTF-8 become U+FFFD, one each; the first fault is named by its character and place, in
Go's words. A field that is there twice counts with its last value, and can be reported.

YAML of a body, without aliases and dates, and the keys it gives twice; faults are worded as Go's reader does.
"""

import json
import re
from typing import cast

import yaml

from policyengine.simulator.api_server.statuses import Json

_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_LONE = re.compile("[\udc80-\udcff]")
END = "unexpected end of JSON input"


class JsonError(ValueError):
    """The text is no JSON; the message is the real server's."""


def utf8(body: bytes) -> bytes:
    """`body` with every byte that is no UTF-8 replaced."""
    return _LONE.sub("�", body.decode("utf-8", "surrogateescape")).encode()


def _refuse(raw: bytes, at: int, where: str) -> JsonError:
    if at >= len(raw):
        return JsonError(END)
    text = raw[at : at + 4].decode("utf-8", "ignore")
    mark = text[0] if text and raw[at] < 0xF8 and (raw[at] < 0x80 or raw[at] >= 0xC0) else ""
    if not mark:
        shown = f"\\x{raw[at]:02x}"
    elif mark == "'":
        shown = "\\'"
    elif mark.isprintable():
        shown = mark
    else:
        names = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\a": "\\a"}
        shown = names.get(mark) or (f"\\x{ord(mark):02x}" if ord(mark) < 0x80 else f"\\u{ord(mark):04x}")
    return JsonError(f"invalid character '{shown}' {where}")


def fault(raw: bytes) -> str:
    """What is wrong with a text that is no JSON; the end, where nothing else is."""
    try:
        at = _skip(raw, _value(raw, _skip(raw, 0), 0))
        return str(_refuse(raw, at, "after top-level value"))
    except JsonError as error:
        return str(error)
    except RecursionError:
        return "exceeded max depth"


def _skip(raw: bytes, at: int) -> int:
    found = _SPACE.match(raw, at)
    return found.end() if found else at


def _value(raw: bytes, at: int, depth: int) -> int:
    """The place after the value at `at`."""
    mark = raw[at : at + 1]
    if mark == b"{":
        return _members(raw, at + 1, depth)
    if mark == b"[":
        return _elements(raw, at + 1, depth)
    if mark == b'"':
        return _string(raw, at + 1)
    if mark in _LITERALS:
        return _literal(raw, at, _LITERALS[mark])
    if mark and mark in b"-0123456789":
        return _number(raw, at)
    raise _refuse(raw, at, "looking for beginning of value")


def _members(raw: bytes, at: int, depth: int) -> int:
    at = _skip(raw, at)
    if raw[at : at + 1] == b"}":
        return at + 1
    while True:
        if raw[at : at + 1] != b'"':
            raise _refuse(raw, at, "looking for beginning of object key string")
        at = _skip(raw, _string(raw, at + 1))
        if raw[at : at + 1] != b":":
            raise _refuse(raw, at, "after object key")
        at = _skip(raw, _value(raw, _skip(raw, at + 1), depth + 1))
        if raw[at : at + 1] == b"}":
            return at + 1
        if raw[at : at + 1] != b",":
            raise _refuse(raw, at, "after object key:value pair")
        at = _skip(raw, at + 1)


def _elements(raw: bytes, at: int, depth: int) -> int:
    at = _skip(raw, at)
    if raw[at : at + 1] == b"]":
        return at + 1
    while True:
        at = _skip(raw, _value(raw, at, depth + 1))
        if raw[at : at + 1] == b"]":
            return at + 1
        if raw[at : at + 1] != b",":
            raise _refuse(raw, at, "after array element")
        at = _skip(raw, at + 1)


def _string(raw: bytes, at: int) -> int:
    while at < len(raw):
        byte = raw[at]
        if byte == 0x22:
            return at + 1
        if byte < 0x20:
            raise _refuse(raw, at, "in string")
        if byte == 0x5C:
            size = 6 if raw[at + 1 : at + 2] == b"u" else 2
            escape = raw[at : at + size]
            if len(escape) < size:
                raise JsonError(END)
            if not re.fullmatch(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})', escape):
                raise JsonError(f"invalid escape sequence `{escape.decode('utf-8', 'replace')}` in string")
            at += size
            continue
        at += 1
    raise JsonError(END)


def _literal(raw: bytes, at: int, word: bytes) -> int:
    for offset, wanted in enumerate(word):
        if raw[at + offset : at + offset + 1] != bytes([wanted]):
            raise _refuse(raw, at + offset, f"in literal {word.decode()} (expecting '{chr(wanted)}')")
    return at + len(word)


def _number(raw: bytes, at: int) -> int:
    found = _NUMBER.match(raw, at)
    if found is None:
        raise _refuse(raw, at + 1, "in numeric literal")
    end = found.end()
    if raw[end : end + 1] in (b".", b"e", b"E"):
        more = end + 1
        if raw[more : more + 1] in (b"+", b"-"):
            more += 1
        raise _refuse(raw, more, "in numeric literal")
    return end


class _Twice(dict[str, Json]):
    """An object some of whose fields were there twice; they are named in `again`."""

    again: list[str]


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    out = dict(pairs)
    if len(out) == len(pairs):
        return out
    seen: set[str] = set()
    twice = _Twice(out)
    twice.again = []
    for name, _ in pairs:
        if name in seen and name not in twice.again:
            twice.again.append(name)
        seen.add(name)
    return twice


_decoder = json.JSONDecoder(object_pairs_hook=_pairs)


def duplicates(body: bytes) -> list[str]:
    """The paths of fields that are there twice, in the order they are met; the body is known to be JSON."""
    return list(_duplicates(_decoder.decode(utf8(body).decode()), ""))


def _duplicates(value: Json, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        again = value.again if isinstance(value, _Twice) else []
        for name, item in value.items():
            found += _duplicates(item, f"{path}{name}.")
            if name in again:
                found.append(f"{path}{name}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += _duplicates(item, f"{path.removesuffix('.')}[{at}].")
    return found


class _NoAliases(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML without aliases, which could make a small text a huge object, and without dates."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        return cast("yaml.Node | None", super().compose_node(parent, index))


_NoAliases.yaml_implicit_resolvers = {
    mark: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for mark, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def yaml_duplicates(body: bytes) -> list[str]:
    """The paths of keys that are there twice in YAML that can be read."""
    loader = _NoAliases(body)
    try:
        root = loader.get_single_node()
    finally:
        loader.dispose()
    return _yaml_duplicates(root, "")


def _yaml_duplicates(node: yaml.Node | None, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add(key.value)
            found += _yaml_duplicates(value, path)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            found += _yaml_duplicates(item, path)
    return found


def load_yaml(body: bytes) -> Json:
    """YAML of a body; raises ValueError with a Go-like message."""
    try:
        return cast(Json, yaml.load(body, Loader=_NoAliases))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"yaml: line {line}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"yaml: {str(error).splitlines()[0]}") from error
