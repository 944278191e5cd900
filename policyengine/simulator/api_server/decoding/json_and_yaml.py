"""JSON and YAML of request bodies as the real server reads them, with its words for what is wrong.

Bytes in strings that are no UTF-8 become U+FFFD, one each. The first error is named by its character and place, in Go's
words. A field that is there twice counts with its last value, and can be reported. YAML has no aliases and no dates.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import yaml

from policyengine.simulator.api_server.statuses import Json

_LITERALS = {"t": "true", "f": "false", "n": "null"}
_PLACES = {
    "Expecting property name": "looking for beginning of object key string",
    "Expecting ':'": "after object key",
    "Invalid control character": "in string",
    "Extra data": "after top-level value",
}
_STRING = r'"(?:[^"\\]|\\.)*"'
_CONSTANT = re.compile(_STRING + r"|(NaN|-?Infinity)")
_BRACKETS = re.compile(_STRING + r"|([][{}])")
_LONE = re.compile("[\udc80-\udcff]")
END = "unexpected end of JSON input"


def utf8(body: bytes) -> bytes:
    """`body` with every byte that is no UTF-8 replaced."""
    return _LONE.sub("�", body.decode("utf-8", "surrogateescape")).encode()


def _refuse(raw: bytes, at: int, where: str) -> str:
    if at >= len(raw):
        return END
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
    return f"invalid character '{shown}' {where}"


def fault(raw: bytes) -> str:
    """What is wrong with a text that is no JSON, in the words of Go's reader; Python's finds the place."""
    text = raw.decode("latin-1")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _in_gos_words(raw, text, error.msg, error.pos)
    except RecursionError:
        return "exceeded max depth"
    constant = next((found.start() for found in _CONSTANT.finditer(text) if found.group(1)), len(raw))
    return _in_gos_words(raw, text, "Expecting value", constant)


def _in_gos_words(raw: bytes, text: str, said: str, at: int) -> str:
    if said.startswith("Invalid \\"):
        at = text.rindex("\\", 0, at + 1)
        escape = text[at : at + (6 if text[at + 1 : at + 2] == "u" else 2)]
        return f"invalid escape sequence `{escape}` in string"
    if at >= len(raw) or said.startswith("Unterminated"):
        return END
    if at and text[at] in ".eE" and text[at - 1].isdigit():
        # Python's reader ends a number before a fraction or exponent without digits.
        return _refuse(raw, at + (2 if text[at + 1 : at + 2] in ("+", "-") else 1), "in numeric literal")
    if said == "Expecting value":
        word = _LITERALS.get(text[at], "")
        wrong = next((n for n, mark in enumerate(word) if text[at + n : at + n + 1] != mark), 0)
        if wrong:
            return _refuse(raw, at + wrong, f"in literal {word} (expecting '{word[wrong]}')")
        if text[at] == "-":
            return _refuse(raw, at + 1, "in numeric literal")
        return _refuse(raw, at, "looking for beginning of value")
    if said.startswith("Expecting ','"):
        return _refuse(raw, at, "after object key:value pair" if _in_object(text[:at]) else "after array element")
    return _refuse(raw, at, next(words for start, words in _PLACES.items() if said.startswith(start)))


def _in_object(text: str) -> bool:
    """Whether a text that breaks off does so in an object rather than an array."""
    open_: list[str] = []
    for mark in _BRACKETS.findall(text):
        if mark in ("{", "["):
            open_.append(mark)
        elif mark:
            open_.pop()
    return bool(open_) and open_[-1] == "{"


class _Fields(list[tuple[str, Any]]):
    """An object as its fields, those that are there twice with them."""


_decoder = json.JSONDecoder(object_pairs_hook=_Fields)


def duplicates(body: bytes) -> list[str]:
    """The paths of fields that are there twice, in the order they are met; the body is known to be JSON."""
    return list(_duplicates(_decoder.decode(utf8(body).decode()), ""))


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Fields):
        times = Counter(name for name, _ in value)
        for name, item in dict(value).items():
            yield from _duplicates(item, f"{path}{name}.")
            if times[name] > 1:
                yield f"{path}{name}"
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _duplicates(item, f"{path.removesuffix('.')}[{at}].")


def _without_dates(loader: type[yaml.SafeLoader]) -> Any:
    rows = loader.yaml_implicit_resolvers.items()
    plain = {mark: [row for row in known if row[0] != "tag:yaml.org,2002:timestamp"] for mark, known in rows}
    return type("Loader", (loader,), {"yaml_implicit_resolvers": plain})


# libyaml says what is wrong as Go's reader does, which was made of it.
_LOADER = _without_dates(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def yaml_duplicates(body: bytes) -> list[str]:
    """The paths of keys that are there twice in YAML that can be read."""
    return _yaml_duplicates(yaml.compose(body, Loader=_LOADER), "")


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
        # An alias could make a small text a huge object.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, Loader=_LOADER)):
            raise yaml.YAMLError("aliases are not taken")
        return cast(Json, yaml.load(body, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"yaml: line {line}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"yaml: {str(error).splitlines()[0]}") from error
