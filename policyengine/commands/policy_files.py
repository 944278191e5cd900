"""The policy texts in files, folders and ConfigMap manifests, each with the way from its offsets to the file's.

A folder stands for its `*.policy` files and for its YAML and JSON manifests with ConfigMaps that hold policies
(data keys `*.policy`). A manifest is data from outside: no aliases, no anchors, no tags, bounded size and depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Source
from policyengine.language.parse import SourceError, decode_source, read_source
from policyengine.language.syntax import Span

MANIFESTS = frozenset({".yaml", ".yml", ".json"})
MAX_MANIFEST = 4 << 20
MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class PolicyText:
    """One policy text, and where it stands: `shown` is the file as the user sees it."""

    source: Source
    shown: Source
    starts: tuple[int, ...] = ()
    """Where each line of the text begins in `shown`; empty where the text is the file."""
    folded: bool = False
    """The lines do not stand in the manifest one by one: everything points at the text's beginning."""

    def placed(self, diagnostic: Diagnostic) -> Diagnostic:
        """The finding at its place in the file."""
        if not self.starts:
            return diagnostic
        fix = diagnostic.fix
        if fix is not None:
            fix = None if self.folded else Fix(fix.title, tuple(self._edit(edit) for edit in fix.edits))
        related = tuple(replace(one, span=self._span(one.span)) for one in diagnostic.related)
        return replace(diagnostic, file=self.shown.file, span=self._span(diagnostic.span), fix=fix, related=related)

    def _edit(self, edit: Edit) -> Edit:
        return Edit(self._span(edit.span), edit.text)

    def _span(self, span: Span) -> Span:
        return Span(self._offset(span.start), self._offset(span.end))

    def _offset(self, offset: int) -> int:
        if self.folded:
            return self.starts[0]
        line, column = self.source.line_column(offset)
        return self.starts[min(line, len(self.starts)) - 1] + column - 1


def policy_texts(paths: Iterable[str]) -> Iterator[PolicyText | SourceError]:
    """The texts of all paths in order; an error in the place of what cannot be used."""
    for name in paths:
        path = Path(name)
        if path.is_dir():
            yield from _in_folder(path)
        else:
            yield from _in_file(path)


def _in_folder(folder: Path) -> Iterator[PolicyText | SourceError]:
    found = False
    for path in sorted(file for file in folder.rglob("*") if file.is_file() and not _hidden(file, folder)):
        if path.suffix == ".policy":
            found = True
            yield from _in_file(path)
        elif path.suffix in MANIFESTS:
            for text in _in_manifest(path, required=False):
                found = True
                yield text
    if not found:
        yield SourceError(f"`{folder}` holds no `*.policy` file and no ConfigMap with one")


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _in_file(path: Path) -> Iterator[PolicyText | SourceError]:
    if path.suffix in MANIFESTS:
        yield from _in_manifest(path, required=True)
        return
    try:
        source = read_source(path)
    except SourceError as error:
        yield error
    else:
        yield PolicyText(source, source)


def _in_manifest(path: Path, required: bool) -> Iterator[PolicyText | SourceError]:
    """The `*.policy` keys of a manifest's ConfigMaps. Unless `required`, a file without any is passed over."""
    try:
        text = _read(path)
        if not required and ("ConfigMap" not in text or ".policy" not in text):
            return
        shown = Source(str(path), text)
        found = [one for document in _documents(path, text) for one in _policies(document, shown)]
    except SourceError as error:
        if required:
            yield error
        return
    if required and not found:
        yield SourceError(f"`{path}` holds no ConfigMap with a `*.policy` key")
    yield from found


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_MANIFEST + 1)
    except OSError as error:
        raise SourceError(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}") from None
    if len(raw) > MAX_MANIFEST:
        raise SourceError(f"`{path}` is larger than 4 MiB, the most a manifest may have")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"`{path}` is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start}") from None
    if not text.strip():
        raise SourceError(f"`{path}` is empty")
    return text


def _documents(path: Path, text: str) -> list[yaml.Node]:
    try:
        _refuse_tricks(path, text)
        return [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not understood"
        raise SourceError(f"`{path}` is not YAML{where}: {problem}") from None
    except RecursionError:
        raise SourceError(f"`{path}` is nested too deeply to be a manifest") from None


def _refuse_tricks(path: Path, text: str) -> None:
    """Aliases may expand without end, tags may mean anything, depth may exhaust the stack."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise SourceError(f"`{path}` uses a YAML alias or anchor on line {line}; write the value out")
        if tag:
            raise SourceError(f"`{path}` uses the YAML tag `{tag}` on line {line}; leave it out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise SourceError(f"`{path}` is nested more than {MAX_DEPTH} levels deep on line {line}")


def _policies(document: yaml.Node, shown: Source) -> Iterator[PolicyText | SourceError]:
    kind = _get(document, "kind")
    name = kind.value if isinstance(kind, yaml.ScalarNode) else ""
    if name in ("List", "ConfigMapList"):
        items = _get(document, "items")
        for item in items.value if isinstance(items, yaml.SequenceNode) else ():
            yield from _policies(item, shown)
    elif name == "ConfigMap":
        data = _get(document, "data")
        for key, value in data.value if isinstance(data, yaml.MappingNode) else ():
            if isinstance(value, yaml.ScalarNode) and str(key.value).endswith(".policy"):
                yield _text(str(key.value), value, shown)


def _get(node: yaml.Node, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _text(key: str, node: yaml.ScalarNode, shown: Source) -> PolicyText | SourceError:
    try:
        source = decode_source(node.value.encode(), f"{shown.file}: {key}")
    except SourceError as error:
        return error
    source = Source(shown.file, source.text)
    if node.style == "|":
        return PolicyText(source, shown, _block_lines(node, source, shown))
    start = node.start_mark.index + (1 if node.style else 0)
    written = shown.text[start : start + len(node.value)]
    return PolicyText(source, shown, (start,), folded=written != node.value)


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


def texts_and_errors(paths: Iterable[str]) -> tuple[list[PolicyText], list[SourceError]]:
    """The usable texts of all paths, and why the others are not."""
    texts: list[PolicyText] = []
    errors: list[SourceError] = []
    for found in policy_texts(paths):
        if isinstance(found, SourceError):
            errors.append(found)
        else:
            texts.append(found)
    return texts, errors
