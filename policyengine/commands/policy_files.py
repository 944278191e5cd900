"""The policy texts in files, folders and manifests, each with the way from its offsets to the file's.

What is named together is loaded together: a policy imports the libraries of every file, overlays reach every policy.

A folder stands for its `*.policy` files and for its YAML and JSON manifests of ConfigMaps that hold policies (data keys
`*.policy`) and of SchedulingPolicies. A manifest is data from outside: no aliases, no anchors, no tags, bounded size
and depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from policyengine.language.diagnostics import Diagnostic
from policyengine.language.parse import SourceError, read_source
from policyengine.language.policy_text import PolicyText
from policyengine.regular_file import is_folder

MANIFESTS = frozenset({".yaml", ".yml", ".json"})


def policy_texts(paths: Iterable[str]) -> Iterator[PolicyText | SourceError]:
    """The texts of all paths in order; an error in the place of what cannot be used."""
    for name in paths:
        path = Path(name)
        if is_folder(path):
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
            for text in _texts_of(path, required=False):
                found = True
                yield text
    if not found:
        yield SourceError(f"`{folder}` holds no `*.policy` file and no ConfigMap with one")


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


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


def texts_and_errors(paths: Iterable[str]) -> tuple[list[PolicyText], list[SourceError]]:
    """The usable texts of all paths, each once, and why the others are not."""
    texts: dict[str, PolicyText] = {}
    errors: list[SourceError] = []
    for found in policy_texts(paths):
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
