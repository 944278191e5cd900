"""YAML from outside, as data only: no aliases (they may expand without end), no tags (they may mean anything), no depth
that exhausts a stack."""

from __future__ import annotations

import yaml

MAX_DEPTH = 40


class PlainYamlError(ValueError):
    """A text that is no plain YAML. The message continues "the file …"; `line` counts from 1, 0 where none is known."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def documents(text: str) -> list[yaml.Node]:
    """The documents of a text, as nodes that know their places.

    Raises:
        PlainYamlError: it is not YAML, uses an alias, anchor or tag, or is nested too deeply.
    """
    try:
        _refuse_tricks(text)
        return [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        where = f" on line {line}" if line else ""
        problem = getattr(error, "problem", None) or "not understood"
        raise PlainYamlError(f"is not YAML{where}: {problem}", line) from None
    except RecursionError:
        raise PlainYamlError("is nested too deeply") from None


def _refuse_tricks(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
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
            raise PlainYamlError(f"is nested more than {MAX_DEPTH} levels deep on line {line}", line)
