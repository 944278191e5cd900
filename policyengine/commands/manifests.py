"""The policies in manifests of ConfigMaps and SchedulingPolicies. A manifest is data from outside: no aliases, no
anchors, no tags, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from policyengine import regular_file
from policyengine.kube.policies.params_file import PARAMS_FILE
from policyengine.language.diagnostics import Source
from policyengine.language.parse import SourceError, decode_source
from policyengine.language.policy_text import PolicyText
from policyengine.plain_yaml import PlainYamlError, documents

MAX_MANIFEST = 4 << 20
CARRIERS = ("ConfigMap", "SchedulingPolicy")
"""The kinds whose objects carry policies."""


def texts_of(path: Path, required: bool) -> Iterator[PolicyText | SourceError]:
    """The policies of a manifest's objects. Unless `required`, a file without any is passed over."""
    try:
        text = read_text(path)
        if not required and not may_carry(text):
            return
        found = texts_in(Source(str(path), text))
    except SourceError as error:
        if required:
            yield error
        return
    if required and not found:
        yield no_policy_in(str(path))
    yield from found


def no_policy_in(manifest: str) -> SourceError:
    """The error for a manifest that carries nothing."""
    return SourceError(f"`{manifest}` holds no ConfigMap with a `*.policy` key, and no SchedulingPolicy")


def texts_in(shown: Source) -> list[PolicyText | SourceError]:
    """The same of a manifest's text.

    Raises:
        SourceError: it is no plain YAML, or too deep.
    """
    try:
        return [one for document in documents(shown.text) for one in _policies(document, shown)]
    except PlainYamlError as error:
        raise SourceError(f"`{Path(shown.file)}` {error}") from None


def may_carry(text: str) -> bool:
    """Whether a manifest's text is worth reading: it may carry policies."""
    return ".policy" in text and any(kind in text for kind in CARRIERS)


def read_text(path: Path) -> str:
    """A YAML file from outside.

    Raises:
        SourceError: it cannot be read, is too large, empty, or not UTF-8.
    """
    try:
        raw = regular_file.read(path, MAX_MANIFEST)
    except OSError as error:
        raise SourceError(f"`{path}` cannot be read: {regular_file.reason(error)}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"`{path}` is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start}") from None
    if not text.strip():
        raise SourceError(f"`{path}` is empty")
    return text


def _policies(document: yaml.Node, shown: Source) -> Iterator[PolicyText | SourceError]:
    kind = _get(document, "kind")
    name = kind.value if isinstance(kind, yaml.ScalarNode) else ""
    if name in ("List", *(f"{kind}List" for kind in CARRIERS)):
        items = _get(document, "items")
        for item in items.value if isinstance(items, yaml.SequenceNode) else ():
            yield from _policies(item, shown)
    elif name == "ConfigMap":
        yield from _of_config_map(document, shown)
    elif name == "SchedulingPolicy":
        yield from _of_scheduling_policy(document, shown)


def _of_scheduling_policy(policy: yaml.Node, shown: Source) -> Iterator[PolicyText | SourceError]:
    # A ConfigMap beside it may have the same name.
    spec, holder, prefix = _get(policy, "spec"), policy.start_mark.index, f"SchedulingPolicy/{_name(policy)}"
    written = _get(spec, "params") if spec is not None else None
    params: PolicyText | None = None
    if isinstance(written, yaml.MappingNode) and written.value:
        text, starts = _without_indentation(written, shown)
        params = PolicyText(Source(f"{shown.file}: {prefix}spec.params", text), shown, starts, holder=holder)
    yield from _texts(_get(spec, "policies") if spec is not None else None, shown, holder, prefix, params)


def _without_indentation(node: yaml.Node, shown: Source) -> tuple[str, tuple[int, ...]]:
    """A part of a manifest as a file of its own, and where each line of it begins in the manifest."""
    first, last, column = node.start_mark.line + 1, node.end_mark.line + 1, node.start_mark.column
    lines, starts = [], []
    for number in range(first, min(last, shown.line_count) + 1):
        line = shown.line(number)
        cut = column if number == first else min(column, len(line) - len(line.lstrip(" ")))
        lines.append(line[cut : node.end_mark.column if number == last else None])
        starts.append(shown.line_start(number) + cut)
    return "\n".join(lines), tuple(starts)


def _of_config_map(config_map: yaml.Node, shown: Source) -> Iterator[PolicyText | SourceError]:
    data, holder, prefix = _get(config_map, "data"), config_map.start_mark.index, _name(config_map)
    written = _get(data, PARAMS_FILE) if data is not None else None
    params: PolicyText | None = None
    if isinstance(written, yaml.ScalarNode) and written.value.strip():
        read = _text(f"{prefix}{PARAMS_FILE}", written, shown, holder)
        if isinstance(read, SourceError):
            yield read
        else:
            params = read
    yield from _texts(data, shown, holder, prefix, params)


def _texts(
    data: yaml.Node | None, shown: Source, holder: int, prefix: str, params: PolicyText | None
) -> Iterator[PolicyText | SourceError]:
    for key, value in data.value if isinstance(data, yaml.MappingNode) else ():
        if isinstance(value, yaml.ScalarNode) and str(key.value).endswith(".policy"):
            text = _text(f"{prefix}{key.value}", value, shown, holder)
            yield text if isinstance(text, SourceError) else replace(text, params=params)


def _name(config_map: yaml.Node) -> str:
    """`namespace/name/` of an object, as far as it says."""
    metadata = _get(config_map, "metadata")
    parts = [_get(metadata, field) for field in ("namespace", "name")] if metadata is not None else []
    return "".join(f"{part.value}/" for part in parts if isinstance(part, yaml.ScalarNode))


def _get(node: yaml.Node, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _text(key: str, node: yaml.ScalarNode, shown: Source, holder: int) -> PolicyText | SourceError:
    try:
        source = decode_source(node.value.encode(), f"{shown.file}: {key}")
    except SourceError as error:
        return error
    if node.style == "|":
        return PolicyText(source, shown, _block_lines(node, source, shown), holder=holder)
    start = node.start_mark.index + (1 if node.style else 0)
    written = shown.text[start : start + len(node.value)]
    return PolicyText(source, shown, (start,), folded=written != node.value, holder=holder)


def _block_lines(node: yaml.ScalarNode, source: Source, shown: Source) -> tuple[int, ...]:
    """Where each line of a literal block begins: behind the indentation YAML takes off."""
    first = node.start_mark.line + 2
    numbers = range(first, min(first + source.line_count, shown.line_count + 1))
    indent = next((_indent(shown.line(number), source.text) for number in numbers if shown.line(number).strip()), 0)
    return tuple(shown.line_start(number) + min(indent, len(shown.line(number))) for number in numbers)


def _indent(line: str, text: str) -> int:
    """How much of a block's first written line is indentation: the rest is how the text begins."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    return len(line) - len(first) if line.endswith(first) else len(line) - len(line.lstrip(" "))
