"""`library`, `import` and `overlay`: what the files that are loaded together give each other.

Each library is checked after what it imports.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import syntax
from policyengine.language.checking.block_names import check_names, in_order
from policyengine.language.checking.context import Names
from policyengine.language.checking.definitions import Definitions
from policyengine.language.checking.findings import Report
from policyengine.language.diagnostics import Related, Source, has_errors
from policyengine.language.schema import ROOTS
from policyengine.language.syntax import Span
from policyengine.language.syntax.expression_nodes import names_in


class File(Struct, frozen=True):
    """One of the files that are loaded together."""

    tree: syntax.File
    source: Source
    report: Report


class Library(Struct, frozen=True):
    """A library after its check. `names` None: it is in a circle of imports, nothing can be said of what it has."""

    file: File
    block: syntax.Library
    names: Names | None
    imports: tuple[Imported, ...]
    failed: bool


class Imported(Struct, frozen=True):
    """An import of a file. `library` None: it was reported."""

    known_as: str
    statement: syntax.Import
    library: Library | None


MOST_BROUGHT = 200_000
"""How many params and lets the imports of all files may bring, each counted wherever it is brought."""
Key = tuple[int, int]
"""Which file, which library in it."""
_T = TypeVar("_T")


class Libraries:
    """The libraries of the files that are loaded together."""

    def __init__(self, files: Sequence[File]) -> None:
        self._numbers = {id(file): at for at, file in enumerate(files)}
        self._files = files
        self._brought = 0
        """How many params and lets all imports have brought so far."""
        self._blocks: dict[Key, syntax.Library] = {
            (at, number): block for at, file in enumerate(files) for number, block in enumerate(file.tree.libraries)
        }
        self._keys: dict[str, list[Key]] = {}
        """Those of a name."""
        for key, block in self._blocks.items():
            self._keys.setdefault(block.name.text, []).append(key)
        self._done: dict[Key, Library] = {}
        for file in files:
            each_once(file.report, "library", [block.name for block in file.tree.libraries], {})
        self._targets = [self._resolved(at) for at in range(len(files))]
        """For each file: what is imported, by the name it has there; None for what was reported."""
        needs = {key: self._needs(key) for key in self._blocks}
        for key, cycle in in_order(needs):
            self._check(key, cycle, needs[key])

    def imported(self, file: File) -> tuple[Imported, ...]:
        """What a file imports, after the libraries were checked."""
        return tuple(
            Imported(name, statement, self._done.get(target) if target is not None else None)
            for name, (statement, target) in self._targets[self._numbers[id(file)]].items()
        )

    def bring_in(
        self, definitions: Definitions, imports: Sequence[Imported], report: Report, place: Span | None = None
    ) -> tuple[Imported, ...]:
        """What the libraries define, under full names; the imports, those over the budget as reported.

        A policy's lets of other files stand where these are imported, or in `place`: see `Definitions.placed`.
        """
        brought = []
        for one in imports:
            if one.library is not None and one.library.names is not None:
                found = one.library.names.definitions
                self._brought += 1 + len(found.params) + len(found.lets)
                if self._brought > MOST_BROUGHT:
                    message = f"all imports together bring more than {MOST_BROUGHT:,} params and lets"
                    report.error("PE2019", f"{message}; import what is used, and in fewer files", one.statement.span)
                    one = replace(one, library=None)
                else:
                    definitions.take_over(found, place or one.statement.span)
            brought.append(one)
        return tuple(brought)

    def _resolved(self, at: int) -> dict[str, tuple[syntax.Import, Key | None]]:
        report = self._files[at].report
        found: dict[str, tuple[syntax.Import, Key | None]] = {}
        for statement in self._files[at].tree.imports:
            name = (statement.alias or statement.name).text
            if not _may_be_known_as(report, statement):
                continue
            if name in found:
                first = Related(found[name][0].span, "imported here first")
                message = f"another library is known as `{name}`; write `as` and another name"
                report.error("PE2017", message, statement.span, related=(first,))
                continue
            wanted = statement.name
            named = [(self._files[key[0]], key) for key in self._keys.get(wanted.text, ())]
            own = [one for one in named if one[1][0] == at]
            meant = _only_one(report, wanted, own[:1] or named, ("library", "libraries"), self._keys, "PE2017")
            found[name] = (statement, meant)
        return found

    def _needs(self, key: Key) -> frozenset[Key]:
        """The libraries that come before: those of other files that the file imports, and those of its own it names."""
        used = _words(self._blocks[key])
        return frozenset(
            target
            for name, (_, target) in self._targets[key[0]].items()
            if target is not None and (target[0] != key[0] or (name in used and target != key))
        )

    def _check(self, key: Key, cycle: Sequence[Key], needed: frozenset[Key]) -> None:
        file, block, targets = self._files[key[0]], self._blocks[key], self._targets[key[0]]
        if cycle:
            path = " -> ".join(f"`{self._blocks[one].name.text}`" for one in cycle)
            statement = next(one for one, target in self._targets[cycle[0][0]].values() if target == cycle[1])
            file.report.error("PE2017", f"libraries import each other: {path}", statement.span)
        here = {name for name, (_, target) in targets.items() if target and target[0] == key[0]}
        imports = tuple(
            one for one in self.imported(file) if one.known_as not in here or targets[one.known_as][1] in needed
        )
        if cycle or not needed <= self._done.keys():
            self._done[key] = Library(file, block, None, imports, failed=True)
            return
        report = file.report.apart()
        definitions = Definitions(f"{block.name.text}:", file.source.file)
        imports = self.bring_in(definitions, imports, report)
        context = check_names(
            report, block, definitions, libraries_of(imports), prefix=f"{block.name.text}.", file=file.source.file
        )
        file.report.diagnostics += report.diagnostics
        failed = bool(block.broken) or has_errors(report.diagnostics) or any_failed(imports)
        self._done[key] = Library(file, block, context.names, imports, failed)


def libraries_of(imports: Sequence[Imported]) -> Mapping[str, Names | None]:
    """The libraries by the names they are known as."""
    return {one.known_as: one.library.names if one.library is not None else None for one in imports}


def any_failed(imports: Sequence[Imported]) -> bool:
    """Whether something in an import was reported."""
    return any(one.library is None or one.library.failed for one in imports)


def texts_of(imports: Sequence[Imported], file: File) -> Iterator[tuple[Source, Span]]:
    """The statements of a file's imports, and each library they bring in, with what it imports, once."""
    seen: set[int] = set()
    pending = [(file, one) for one in reversed(imports)]
    while pending:
        here, one = pending.pop()
        yield here.source, one.statement.span
        library = one.library
        if library is not None and id(library) not in seen:
            seen.add(id(library))
            yield library.file.source, library.block.span
            pending += [(library.file, inner) for inner in reversed(library.imports)]


def _may_be_known_as(report: Report, statement: syntax.Import) -> bool:
    """Whether the name of an import may stand before a dot; reported otherwise."""
    name = statement.alias or statement.name
    message = ""
    if not name.text.isidentifier() or not name.text.isascii():
        message = f"`{name.text}` is no name to write before a dot; write `as` and one"
        if name.text.endswith(".policy"):
            message = f'an import names a library, not its file: `import "{name.text.removesuffix(".policy")}"`'
    elif name.text in ROOTS:
        message = f"`{name.text}` is a name of the schema; write `as` and another one"
    if message:
        report.error("PE2017", message, name.span)
    return not message


def each_once(
    report: Report,
    what: str,
    names: Iterable[syntax.NameText],
    first: dict[str, tuple[Report, syntax.NameText]],
    plugins: Container[str] = (),
) -> None:
    """Reports names that are empty, taken already (by `first`, which takes up these), or a plugin's."""
    for name in names:
        if not name.text.strip():
            report.error("PE2012", f"a {what} has a name", name.span)
        elif name.text in first:
            there, earlier = first[name.text]
            related = (Related(earlier.span, "taken here"),) if there.file == report.file else ()
            where = "" if there.file == report.file else f" in `{there.file}`"
            report.error("PE2002", f"another {what} is called `{name.text}`{where}", name.span, related=related)
        elif name.text in plugins:
            report.error("PE2002", f"`{name.text}` is the name of a plugin", name.span)
        first.setdefault(name.text, (report, name))


def _words(block: syntax.Library) -> frozenset[str]:
    """The words that stand alone in a library's lets and functions."""
    bodies = [
        member.body if isinstance(member, syntax.Function) else member.value
        for member in block.members
        if isinstance(member, syntax.Function | syntax.Let)
    ]
    return frozenset().union(*map(names_in, bodies))


def overlays_of(files: Sequence[File]) -> Mapping[int, Sequence[tuple[File, syntax.Overlay]]]:
    """The overlays on each policy, by the policy's `id`, in the order of files and lines."""
    found: dict[int, list[tuple[File, syntax.Overlay]]] = {}
    policies = [(file, policy) for file in files for policy in file.tree.policies]
    for file in files:
        for overlay in file.tree.overlays:
            named = [pair for pair in policies if pair[1].name.text == overlay.policy.text]
            own = [pair for pair in named if pair[0] is file]
            known = [policy.name.text for _, policy in policies]
            nouns = ("policy", "policies")
            policy = _only_one(file.report, overlay.policy, own or named, nouns, known, "PE2018")
            if policy is not None and _has_own_name(file, overlay, policy, found.get(id(policy), [])):
                found.setdefault(id(policy), []).append((file, overlay))
    return found


def _has_own_name(
    file: File, overlay: syntax.Overlay, policy: syntax.Policy, earlier: Sequence[tuple[File, syntax.Overlay]]
) -> bool:
    """Whether no earlier overlay on the policy has the name; reported otherwise."""
    name = overlay.name
    if not name.text.strip():
        file.report.error("PE2012", "an overlay has a name", name.span)
        return False
    taken = next((one for one in earlier if one[1].name.text == name.text), None)
    if taken is not None:
        related = (Related(taken[1].name.span, "taken here"),) if taken[0] is file else ()
        message = f"another overlay on `{policy.name.text}` is called `{name.text}`"
        file.report.error("PE2002", message, name.span, related=related)
    return taken is None


def _only_one(
    report: Report,
    name: syntax.NameText,
    found: Sequence[tuple[File, _T]],
    nouns: tuple[str, str],
    known: Iterable[str],
    code: str,
) -> _T | None:
    """The one thing that is found by a name; None (reported) without one, or with several."""
    if len(found) == 1:
        return found[0][1]
    if found:
        places = " and ".join(f"`{file.source.file}`" for file, _ in found[:2])
        report.error(code, f"two {nouns[1]} are called `{name.text}`: in {places}", name.span)
    else:
        message = f"no {nouns[0]} is called `{name.text}` in the files that are loaded together"
        report.unknown(code, message, name.span, name.text, known, fix='"{}"')
    return None
