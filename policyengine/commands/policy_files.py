"""The policy texts in files, folders and manifests, each with the way from its offsets to the file's.

What is named together is loaded together: a policy imports the libraries of every file, overlays reach every policy.

A folder stands for its `*.policy` files and for its YAML and JSON manifests of ConfigMaps that hold policies (data keys
`*.policy`) and of SchedulingPolicies. A manifest is data from outside: no aliases, no anchors, no tags, bounded size
and depth.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from policyengine.commands.options import STDIN
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.parse import SourceError, decode_source, read_source
from policyengine.language.parsing.member_parser import MAX_TEXT
from policyengine.language.policy_text import PolicyText
from policyengine.regular_file import is_folder, read_stream, reason

MANIFESTS = frozenset({".yaml", ".yml", ".json"})
SUITE: Final = ".test.yaml"
"""How the names of suites of tests end."""
_MANIFEST = re.compile(r'^[ \t]*"?apiVersion"?:', re.MULTILINE)


def policy_texts(paths: Iterable[str], stdin_name: str = STDIN) -> Iterator[PolicyText | SourceError]:
    """The texts of all paths in order, `-` being standard input, which can be read once; an error in the place of what
    cannot be used."""
    for name in dict.fromkeys(paths):
        path = Path(name)
        if name == "-":
            yield from _in_standard_input(stdin_name)
        elif is_folder(path):
            yield from _in_folder(path)
        else:
            yield from _in_file(path)


def standard_input(name: str = STDIN) -> Source:
    """What standard input holds, as a file of that name.

    Raises:
        SourceError: it is empty, over 1 MiB, not UTF-8, or cannot be read.
    """
    stream = getattr(sys.stdin, "buffer", None)  # Python has no `stdin` where it is closed
    try:
        return decode_source(read_stream(stream, MAX_TEXT) if stream is not None else b"", name)
    except OSError as error:
        raise SourceError(f"`{name}` cannot be read: {reason(error)}") from None


def _in_standard_input(name: str) -> Iterator[PolicyText | SourceError]:
    """Its policy, or those of the manifest that it is by its name, or by what it says."""
    try:
        source = standard_input(name)
        if Path(name).suffix not in MANIFESTS and not _MANIFEST.search(source.text):
            yield PolicyText(source, source)
            return
        from policyengine.commands.manifests import no_policy_in, texts_in

        found = texts_in(source)
        yield from found or [no_policy_in(name)]
    except SourceError as error:
        yield error


def _in_folder(folder: Path) -> Iterator[PolicyText | SourceError]:
    files, closed = _files(folder)
    yield from closed
    found = bool(closed)
    for path in files:
        if path.suffix == ".policy":
            found = True
            yield from _in_file(path)
        elif path.suffix in MANIFESTS:
            for text in _texts_of(path, required=False):
                found = True
                yield text
    if not found:
        yield SourceError(f"`{folder}` holds no `*.policy` file and no ConfigMap with one")


def _files(folder: Path) -> tuple[list[Path], list[SourceError]]:
    """The files in a folder and in those below it, but for hidden ones, and which folders cannot be listed: policies
    may be missing then."""
    files: list[Path] = []
    closed: list[OSError] = []
    for place, below, names in os.walk(folder, onerror=closed.append):
        below[:] = [name for name in below if not name.startswith(".")]
        files += [Path(place, name) for name in names if not name.startswith(".")]
    errors = [SourceError(f"`{error.filename}` cannot be read: {reason(error)}") for error in closed]
    return sorted(file for file in files if file.is_file()), errors


def _in_file(path: Path) -> Iterator[PolicyText | SourceError]:
    if path.suffix in MANIFESTS:
        yield from _texts_of(path, required=True)
        return
    try:
        source = read_source(path)
    except SourceError as error:
        yield error
    else:
        yield PolicyText(source, source)


def _texts_of(manifest: Path, required: bool) -> Iterator[PolicyText | SourceError]:
    # Imported here: most commands meet no manifest, and YAML takes a while to load.
    from policyengine.commands.manifests import texts_of

    return texts_of(manifest, required)


def texts_and_errors(paths: Iterable[str], stdin_name: str = STDIN) -> tuple[list[PolicyText], list[SourceError]]:
    """The usable texts of all paths, each once, and why the others are not."""
    texts: dict[str, PolicyText] = {}
    errors: list[SourceError] = []
    for found in policy_texts(paths, stdin_name):
        if isinstance(found, SourceError):
            errors.append(found)
        else:
            texts.setdefault(found.source.file, found)
    return list(texts.values()), errors


def by_text(texts: Iterable[PolicyText], findings: Iterable[Diagnostic]) -> list[tuple[PolicyText, list[Diagnostic]]]:
    """The findings of texts that were loaded together, each with its text, at its place in the file."""
    found: dict[str, list[Diagnostic]] = {}
    for finding in findings:
        found.setdefault(finding.file, []).append(finding)
    return [(text, [text.placed(one) for one in found.get(text.source.file, ())]) for text in texts]
