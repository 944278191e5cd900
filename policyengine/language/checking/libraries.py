"""`library`, `import` and `overlay`: what the files that are loaded together give each other.

Each library is checked after what it imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import syntax
from policyengine.language.checking.block_names import BlockNames, in_order
from policyengine.language.checking.check_codes import DUPLICATE_NAME, WRONG_IMPORT, WRONG_OVERLAY, WRONG_WORD
from policyengine.language.checking.context import Report, replacing
from policyengine.language.checking.resolved_names import Definitions
from policyengine.language.diagnostics import Related, Source, has_errors
from policyengine.language.ir.ir_walk import respanned
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
    names: BlockNames | None
    imports: tuple[Imported, ...]
    failed: bool


class Imported(Struct, frozen=True):
    """An import of a file. `library` None: it was reported."""

    known_as: str
    statement: syntax.Import
    library: Library | None


Key = tuple[int, int]
"""Which file, which library in it."""


class Libraries:
    """The libraries of the files that are loaded together."""

    def __init__(self, files: Sequence[File]) -> None:
        self._files = files
        self._targets: list[dict[str, tuple[syntax.Import, Key | None]]] = []
        """For each file: what is imported, by the name it has there."""
        self._done: dict[Key, Library] = {}
        for file in files:
            _once_a_file(file)
        for at in range(len(files)):
            self._targets.append(self._resolved(at))
        keys = {str(key): key for key in self._keys()}
        needs = {name: frozenset(map(str, self._needs(key))) for name, key in keys.items()}
        for name, cycle in in_order(needs):
            self._check(keys[name], [keys[other] for other in cycle])

    def _keys(self) -> Iterator[Key]:
        for at, file in enumerate(self._files):
            yield from ((at, number) for number in range(len(file.tree.libraries)))

    def _block(self, key: Key) -> syntax.Library:
        return self._files[key[0]].tree.libraries[key[1]]

    # --- which library an import means ----------------------------------------------------------------

    def _resolved(self, at: int) -> dict[str, tuple[syntax.Import, Key | None]]:
        file = self._files[at]
        found: dict[str, tuple[syntax.Import, Key | None]] = {}
        for statement in file.tree.imports:
            name = _known_as(file.report, statement)
            if name is None:
                continue
            if name.text in found:
                first = Related(found[name.text][0].span, "imported here first")
                message = f"another library is known as `{name.text}`; write `as` and another name"
                file.report.error(WRONG_IMPORT, message, statement.span, related=(first,))
                continue
            found[name.text] = (statement, self._meant(at, statement))
        return found

    def _meant(self, at: int, statement: syntax.Import) -> Key | None:
        """The library of that name in the file itself, else the one in another file."""
        name, report = statement.name, self._files[at].report
        named = [key for key in self._keys() if self._block(key).name.text == name.text]
        found = [key for key in named if key[0] == at][:1] or named
        if len(found) == 1:
            return found[0]
        if found:
            places = " and ".join(f"`{self._files[key[0]].source.file}`" for key in found[:2])
            report.error(WRONG_IMPORT, f"two libraries are called `{name.text}`: in {places}", name.span)
            return None
        known = [self._block(key).name.text for key in self._keys()]
        close = report.closest(name.text, known)
        hint = f"; did you mean `{close}`?" if close else ""
        message = f"no library is called `{name.text}` in the files that are loaded together{hint}"
        report.error(WRONG_IMPORT, message, name.span, replacing(name.span, f'"{close}"') if close else None)
        return None

    # --- one library after the other ------------------------------------------------------------------

    def _needs(self, key: Key) -> list[Key]:
        """The libraries that come before: those of other files that the file imports, and those of its own it names."""
        used = _words(self._block(key))
        return [
            target
            for name, (_, target) in self._targets[key[0]].items()
            if target is not None and (target[0] != key[0] or (name in used and target != key))
        ]

    def _check(self, key: Key, cycle: Sequence[Key]) -> None:
        file, block = self._files[key[0]], self._block(key)
        if cycle:
            self._report_circle(file, cycle)
        needed, targets = set(self._needs(key)), self._targets[key[0]]
        idle = {
            name for name, (_, target) in targets.items() if target and target[0] == key[0] and target not in needed
        }
        imports = tuple(one for one in self.imported(file) if one.known_as not in idle)
        if cycle or any(one.library is None for one in self._pending(key)):
            self._done[key] = Library(file, block, None, imports, failed=True)
            return
        report = file.report.apart()
        definitions = Definitions(f"{block.name.text}:")
        bring_in(definitions, imports, file)
        prefix = f"{block.name.text}."
        libraries = {one.known_as: one.library.names if one.library else None for one in imports}
        names = BlockNames(report, block.members, definitions, broken=block.broken, libraries=libraries, prefix=prefix)
        file.report.diagnostics += report.diagnostics
        failed = bool(block.broken) or has_errors(report.diagnostics) or any(_failed(one) for one in imports)
        self._done[key] = Library(file, block, names, imports, failed)

    def _pending(self, key: Key) -> list[Imported]:
        """What the library needs and is not checked: the rest of a circle."""
        waiting = [self._targets[key[0]][name] for name in self._targets[key[0]]]
        needed = set(self._needs(key))
        return [Imported("", statement, None) for statement, t in waiting if t in needed and t not in self._done]

    def _report_circle(self, file: File, cycle: Sequence[Key]) -> None:
        path = " -> ".join(f"`{self._block(key).name.text}`" for key in cycle)
        statement = next(one for one, target in self._targets[cycle[0][0]].values() if target == cycle[1])
        file.report.error(WRONG_IMPORT, f"libraries import each other: {path}", statement.span)

    def imported(self, file: File) -> tuple[Imported, ...]:
        """What a file imports, after the libraries were checked."""
        targets = self._targets[self._files.index(file)]
        return tuple(
            Imported(name, statement, self._done.get(target) if target is not None else None)
            for name, (statement, target) in targets.items()
        )


def bring_in(definitions: Definitions, imports: Sequence[Imported], file: File, place: Span | None = None) -> None:
    """What the libraries define, under full names. Lets of another file stand where that is imported, or in `place`."""
    for one in imports:
        library = one.library
        if library is None or library.names is None:
            continue
        brought = library.names.definitions
        known = frozenset(definitions.lets)
        definitions.take_over(brought)
        for name, let in brought.lets.items() if library.file is not file or place is not None else ():
            if name not in known:
                span = place or one.statement.span
                definitions.lets[name] = replace(let, value=respanned(let.value, span), file=library.file.source.file)


def libraries_of(imports: Sequence[Imported]) -> Mapping[str, BlockNames | None]:
    """The libraries by the names they are known as."""
    return {one.known_as: one.library.names if one.library is not None else None for one in imports}


def _failed(one: Imported) -> bool:
    return one.library is None or one.library.failed


def any_failed(imports: Sequence[Imported]) -> bool:
    """Whether something in an import was reported."""
    return any(map(_failed, imports))


def texts_of(imports: Sequence[Imported], file: File) -> Iterator[tuple[Source, Span]]:
    """The statements of a file's imports, and the libraries they bring in, with what those import."""
    for one in imports:
        yield file.source, one.statement.span
        if one.library is not None:
            yield one.library.file.source, one.library.block.span
            yield from texts_of(one.library.imports, one.library.file)


def _known_as(report: Report, statement: syntax.Import) -> syntax.NameText | None:
    name = statement.alias or statement.name
    if not name.text.isidentifier() or not name.text.isascii():
        message = f"`{name.text}` is no name to write before a dot; write `as` and one"
        report.error(WRONG_IMPORT, message, name.span)
        return None
    if name.text in ROOTS:
        message = f"`{name.text}` is a name of the schema; write `as` and another one"
        report.error(WRONG_IMPORT, message, name.span)
        return None
    return name


def _once_a_file(file: File) -> None:
    first: dict[str, syntax.NameText] = {}
    for block in file.tree.libraries:
        name = block.name
        if not name.text.strip():
            file.report.error(WRONG_WORD, "a library has a name", name.span)
        elif name.text in first:
            related = (Related(first[name.text].span, "taken here"),)
            message = f"another library is called `{name.text}`"
            file.report.error(DUPLICATE_NAME, message, name.span, related=related)
        first.setdefault(name.text, name)


def _words(block: syntax.Library) -> frozenset[str]:
    """The words that stand alone in a library's lets and functions."""
    bodies = [
        member.body if isinstance(member, syntax.Function) else member.value
        for member in block.members
        if isinstance(member, syntax.Function | syntax.Let)
    ]
    return frozenset().union(*map(names_in, bodies))


# --- overlays ---------------------------------------------------------------------------------------------


class Overlays:
    """The overlays of the files that are loaded together, by the policies they are on."""

    def __init__(self, files: Sequence[File]) -> None:
        self._files = files
        self._on: dict[int, list[tuple[File, syntax.Overlay]]] = {}
        for file in files:
            for overlay in file.tree.overlays:
                policy = self._meant(file, overlay)
                if policy is not None and self._named(file, overlay, policy):
                    self._on.setdefault(id(policy), []).append((file, overlay))

    def on(self, file: File, policy: syntax.Policy) -> list[tuple[File, syntax.Overlay]]:
        """The overlays on a policy, in the order of files and lines."""
        return self._on.get(id(policy), [])

    def _meant(self, file: File, overlay: syntax.Overlay) -> syntax.Policy | None:
        """The policy of that name in the file itself, else the one in another file."""
        name = overlay.policy
        named = [
            (other, policy) for other in self._files for policy in other.tree.policies if policy.name.text == name.text
        ]
        found = [pair for pair in named if pair[0] is file] or named
        if len(found) == 1:
            return found[0][1]
        if found:
            places = " and ".join(f"`{other.source.file}`" for other, _ in found[:2])
            file.report.error(WRONG_OVERLAY, f"two policies are called `{name.text}`: in {places}", name.span)
            return None
        known = [policy.name.text for other in self._files for policy in other.tree.policies]
        close = file.report.closest(name.text, known)
        hint = f"; did you mean `{close}`?" if close else ""
        message = f"no policy is called `{name.text}` in the files that are loaded together{hint}"
        file.report.error(WRONG_OVERLAY, message, name.span, replacing(name.span, f'"{close}"') if close else None)
        return None

    def _named(self, file: File, overlay: syntax.Overlay, policy: syntax.Policy) -> bool:
        """Whether the overlay has a name of its own."""
        name = overlay.name
        if not name.text.strip():
            file.report.error(WRONG_WORD, "an overlay has a name", name.span)
            return False
        for other, earlier in self._on.get(id(policy), []):
            if earlier.name.text == name.text:
                related = (Related(earlier.name.span, "taken here"),) if other is file else ()
                message = f"another overlay on `{policy.name.text}` is called `{name.text}`"
                file.report.error(DUPLICATE_NAME, message, name.span, related=related)
                return False
        return True
