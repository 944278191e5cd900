"""A YAML file that is held against a JSON schema; whatever is wrong with it is said with its line and column.

Plain YAML (`plain_yaml`), one document, every key once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import yaml

from policyengine.control_characters import escaped
from policyengine.plain_yaml import PlainYamlError, documents, plain
from policyengine.suggestion import closest

if TYPE_CHECKING:
    from jsonschema import ValidationError

Path = Sequence[str | int]
"""The way from the root to a value: keys and indexes."""

LARGEST = 4 << 20
"""Characters of a text, bytes of its file."""
_SHOWN = 200
_MOST = 100
"""Mistakes that are told at once; what comes behind them often follows from them."""
_CHOICES = ("oneOf", "anyOf", "not")


class CheckedYamlError(ValueError):
    """A document that cannot be used: a sentence for each mistake, with line and column where there are some."""

    def __init__(self, *sentences: str) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


class CheckedYaml:
    """One document: `data` is what it says, `root` how it is written; `wrong` makes an error that names a place."""

    def __init__(self, text: str, schema: Mapping[str, Any]) -> None:
        """Read and check.

        Raises:
            CheckedYamlError: the text is no plain YAML, not one mapping, has a key twice, or is not valid.
        """
        self.root = _root(text)
        _each_key_once(self.root)
        self.data: dict[str, Any] = plain(self.root)
        found = sorted(schema_problems(self.data, schema), key=lambda one: self.line_column(one[0]))
        if found:
            raise CheckedYamlError(*(str(self.wrong(place, escaped(told))) for place, told in found))

    def wrong(self, path: Path, message: str) -> CheckedYamlError:
        """The error at the value the path leads to, or as near to it as there is something."""
        return wrong_at(self._node(path), message)

    def line_column(self, path: Path) -> tuple[int, int]:
        """Where that value stands, both from 1."""
        mark = self._node(path).start_mark
        return mark.line + 1, mark.column + 1

    def _node(self, path: Path) -> yaml.Node:
        node: yaml.Node = self.root
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            node = found
        return node


def schema_errors(data: object, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """What is wrong with plain data by a JSON schema of draft 2020-12; nothing where it is valid."""
    from jsonschema import Draft202012Validator  # a tenth of a scheduler's start, which mostly has no file to check

    return Draft202012Validator(schema).iter_errors(data)


def schema_problems(
    data: object, schema: Mapping[str, Any], told: Callable[[ValidationError], str] | None = None
) -> Iterator[tuple[Path, str]]:
    """The place of each of the first mistakes, in the order of the places, and a sentence about it.

    Arguments:
        told: says what is wrong with a value, behind its place.
    """
    errors = [_innermost(one) for one in islice(schema_errors(data, schema), _MOST)]
    for error in sorted(errors, key=lambda one: [(isinstance(step, str), step) for step in one.absolute_path]):
        place = list(error.absolute_path)
        if error.validator == "additionalProperties" and isinstance(error.schema, Mapping):
            yield from _unknown_keys(place, error)
        else:
            yield place, f"`{path_text(place)}`: {(told or told_of)(error)}"


def _unknown_keys(place: list[str | int], error: ValidationError) -> Iterator[tuple[Path, str]]:
    assert isinstance(error.schema, Mapping)
    known = error.schema.get("properties", {})
    instance: Any = error.instance
    for key in sorted(instance.keys() - known.keys()):
        near = closest(key, known)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(known)}"
        yield [*place, key], f"`{path_text([*place, key])}` is unknown; {hint}"


def told_of(error: ValidationError) -> str:
    """What is wrong with a value, in the schema's words."""
    form = error.schema
    described = form.get("description") if isinstance(form, Mapping) and error.validator in _CHOICES else None
    if described:
        return f"wanted is {described}"
    told, words = str(error.message).replace("'", "`")[:_SHOWN], error.validator_value
    known = words if error.validator == "enum" and isinstance(words, list) else []
    near = closest(str(error.instance), [word for word in known if isinstance(word, str)])
    return f"{told}; did you mean `{near}`?" if near else told


def path_text(place: Path) -> str:
    """The way to a value, as messages name it: `pods.0.requests`."""
    return ".".join(map(str, place)) or "the document"


def _innermost(error: ValidationError) -> ValidationError:
    """Of a value that has none of several forms: what is wrong with it in the one it plainly means to have."""
    while error.validator in _CHOICES and error.context:
        forms: dict[Any, list[ValidationError]] = {}
        for one in error.context:
            forms.setdefault(one.schema_path[0], []).append(one)
        of_another = ("required", "type", "const")  # what a value of another form lacks, or has itself
        meant = [
            wrong
            for wrong in forms.values()
            if all(one.relative_path or one.validator not in of_another for one in wrong)
        ]
        if len(meant) != 1:
            return error
        error = meant[0][0]
    return error


def _root(text: str) -> yaml.MappingNode:
    if len(text) > LARGEST:
        raise CheckedYamlError("it is larger than 4 MiB")
    try:
        found = documents(text)
    except PlainYamlError as error:
        raise CheckedYamlError(f"it {error}") from None
    if len(found) != 1 or not isinstance(found[0], yaml.MappingNode):
        raise CheckedYamlError("it is not one YAML document with keys and values")
    return found[0]


def _each_key_once(node: yaml.Node) -> None:
    """YAML lets the last of two equal keys win; something would be lost without a word."""
    seen: set[str] = set()
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if not isinstance(key, yaml.ScalarNode):
            raise wrong_at(key, "a key is a text")
        if key.value in seen:
            raise wrong_at(key, f"the key `{key.value}` is there twice")
        seen.add(key.value)
        _each_key_once(value)
    for item in node.value if isinstance(node, yaml.SequenceNode) else ():
        _each_key_once(item)


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def wrong_at(node: yaml.Node, message: str) -> CheckedYamlError:
    """The error at a node."""
    mark = node.start_mark
    return CheckedYamlError(f"line {mark.line + 1}, column {mark.column + 1}: {message}")
