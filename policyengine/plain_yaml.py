"""YAML from outside, as data only: no aliases (they may expand without end), no tags (they may mean anything), no depth
that exhausts a stack, no half characters.

Words and numbers are those of YAML 1.2, as in JSON: `on`, `no` and times stay text, and so do `1_0` and `1:30`.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_DEPTH = 40
_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0x[0-9a-fA-F]{1,64}|[0-9]{1,250})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")


class PlainYamlError(ValueError):
    """A text that is no plain YAML. The message continues "the file …"; `line` counts from 1, 0 where none is known."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def documents(text: str) -> list[yaml.Node]:
    """The documents of a text, as nodes that know their places.

    Raises:
        PlainYamlError: it is not YAML, uses an alias, anchor or tag, is nested too deeply, or holds half a character.
    """
    try:
        try:
            return _composed(text, _FAST)
        except (yaml.YAMLError, UnicodeEncodeError):  # it knows no halves of characters, and PyYAML's own says more
            return _composed(text, _WholeCharacters)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        where = f" on line {line}" if line else ""
        problem = getattr(error, "problem", None) or "not understood"
        raise PlainYamlError(f"is not YAML{where}: {problem}", line) from None
    except RecursionError:
        raise PlainYamlError("is nested too deeply") from None


def load(text: str) -> Any:
    """The one document of a text, as the data it is; None where there is none. Raises as `documents`."""
    found = documents(text)
    if len(found) > 1:
        raise PlainYamlError("holds more than one YAML document")
    return plain(found[0]) if found else None


def plain(node: yaml.Node) -> Any:
    """A node as the data it is. A number that YAML 1.2 does not have, or that is too long for one, is text."""
    if isinstance(node, yaml.MappingNode):
        return {_key(key): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(item) for item in node.value]
    text = node.value
    match node.tag.removeprefix(_TAG):
        case "int":
            return int(text, 16 if "x" in text else 10) if _INT.fullmatch(text) else text
        case "float" if _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        case "bool" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "null":
            return None
        case _:
            return text


def _key(node: yaml.Node) -> str:
    """The key of a mapping, as it is written."""
    if not isinstance(node, yaml.ScalarNode):
        line = node.start_mark.line + 1
        raise PlainYamlError(f"has a key that is no text on line {line}", line)
    return str(node.value)


class _WholeCharacters(yaml.SafeLoader):
    """JSON writes a character beyond U+FFFF as two escapes, which YAML takes for two characters: they are one again."""

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        if not node.value.isascii():
            try:
                node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                line = node.start_mark.line + 1
                raise PlainYamlError(f"holds half a character (a lone surrogate) on line {line}", line) from None
        return node


_FAST: Any = getattr(yaml, "CSafeLoader", _WholeCharacters)
"""libyaml's, where it is there: ten times as fast."""


def _composed(text: str, loader: Any) -> list[yaml.Node]:
    _refuse_tricks(text, loader)
    return [node for node in yaml.compose_all(text, Loader=loader) if node is not None]


def _refuse_tricks(text: str, loader: Any) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise PlainYamlError(f"uses a YAML alias or anchor on line {line}; write the value out", line)
        if tag:
            raise PlainYamlError(f"uses the YAML tag `{tag}` on line {line}; leave it out", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise PlainYamlError(f"is nested too deeply: more than {MAX_DEPTH} levels deep on line {line}", line)


def written(*data: Any) -> str:
    """Documents as YAML for people: keys in their order, texts of several lines as literal blocks."""
    return yaml.dump_all(data, Dumper=_Blocks, sort_keys=False, width=120, allow_unicode=True)


class _Blocks(yaml.SafeDumper):
    """Writes texts of several lines as literal blocks, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Blocks.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
