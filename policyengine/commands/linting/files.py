"""Texts -> findings: which files are loaded together, what is wrong with them, what a project has settled.

Lint's settings stand in `policyengine.toml` (`[lint]`) or `pyproject.toml` (`[tool.policyengine.lint]`). The nearest
file counts, looked for in the folder of the policy and then upwards; in one folder `policyengine.toml` before
`pyproject.toml`. A `pyproject.toml` without the section is passed over.
"""

from __future__ import annotations

import os
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from policyengine import regular_file
from policyengine.commands.plugin_packages import packages_bring_plugins
from policyengine.compiler.front import WRONG_ARGUMENTS, Checked, Parsed, checked_trees
from policyengine.language import ir, syntax
from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Diagnostic, Severity, Source, has_errors, in_order
from policyengine.language.lint.lint_settings import Settings, SettingsError, settings_of
from policyengine.language.lint.linter import LINT_CODES, MOST_FINDINGS, lint
from policyengine.language.parse import SourceError, parse_file, read_source
from policyengine.language.policy_text import PolicyText
from policyengine.plugins.facts import plugin_facts

_LARGEST = 4 << 20
_SECTIONS = {"policyengine.toml": ("lint",), "pyproject.toml": ("tool", "policyengine", "lint")}


def settings_for(folder: Path) -> Settings:
    """The settings that hold for the files of a folder.

    Raises:
        SettingsError: the file with the settings cannot be read, or they make no sense.
    """
    whole = folder.resolve()
    for above in (whole, *whole.parents):
        for name, section in _SECTIONS.items():
            place = above / name
            table = _section(place, section) if regular_file.is_file(place) else None
            if table is not None:
                return settings_of(table, f"`{place}`, [{'.'.join(section)}]", LINT_CODES)
    return Settings()


def _section(place: Path, section: tuple[str, ...]) -> Mapping[str, object] | None:
    """The table of a section; None where the file has none. A `policyengine.toml` without one settles nothing."""
    try:
        table: object = tomllib.loads(regular_file.read(place, _LARGEST).decode())
    except OSError as error:
        raise SettingsError(f"`{place}` cannot be read: {regular_file.reason(error)}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"`{place}` is not UTF-8") from None
    except ValueError as error:  # also a number with more digits than Python reads
        raise SettingsError(f"`{place}` is not TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"`{place}` is nested too deeply") from None
    if place.name == "policyengine.toml" and isinstance(table, Mapping):
        other = next((name for name in table if name not in section), None)
        if other is not None:
            raise SettingsError(f"`{place}`: `{other}` settles nothing there; the settings stand under `[lint]`")
    for name in section:
        table = table.get(name) if isinstance(table, Mapping) else None
    if table is None:
        return {} if place.name == "policyengine.toml" else None
    if not isinstance(table, Mapping):
        raise SettingsError(f"`{place}`: `{'.'.join(section)}` is a table")
    return table


class Linted(Struct, frozen=True):
    """A text and its findings, at their places in the file that the user sees."""

    text: PolicyText
    findings: tuple[Diagnostic, ...]
    in_text: tuple[Diagnostic, ...] = ()
    """The same at their places in the text; those about params of its manifest are not among them."""
    policies: tuple[ir.Policy, ...] = ()
    """The policies of the text that have no error."""


def linted(
    texts: Sequence[PolicyText], params: Mapping[str, object] | None = None, most: int | None = MOST_FINDINGS
) -> list[Linted]:
    """The findings of every text, in the order given.

    Policy files are loaded together, with those beside them that they may import from; so are the texts of a ConfigMap.
    What is wrong in a file beside them is not told, unless nothing can be said of a policy before it is put right.

    Arguments:
        params: other values of params, for every policy that has them.
        most: the opinions of one policy; None: all.

    Raises:
        SettingsError: the settings that hold for a file make no sense.
        ParamError: a value is none that its param may have, or no policy has the param.
    """
    named, plugins = list(_named(texts)), known_plugins()
    settings_in: dict[Path, Settings] = {}
    found: dict[int, Linted] = {}
    loaded: list[Checked] = []
    unnamed: list[Linted] = []
    for group in _groups(texts):
        others = list(_beside([texts[at] for at in group])) if not texts[group[0]].starts else []
        beside = [source for source, is_wanted in others if is_wanted]
        overlays = _overlays(source for source, is_wanted in others if not is_wanted)
        sources = [named[at] for at in group]
        parsed = [(source, *parse_file(source)) for source in [*sources, *beside]]
        result, silencing = _with_all(checked_trees(parsed, plugins), parsed, len(sources), plugins)
        unnamed += silencing
        result = _with_refusals(result)
        of_params: list[Diagnostic] = []
        if (beside_them := texts[group[0]].params) is not None:
            from policyengine.commands.linting.params_files import laid_over

            result, of_params = laid_over(result, beside_them)
        if params:
            from policyengine.compiler.params import with_params

            result = result._replace(policies=[with_params(policy, params) for policy in result.policies])
            loaded.append(result)
        for at, source, tree in zip(group, sources, result.trees, strict=False):
            wrong = [finding for finding in result.findings if finding.file == source.file]
            policies = [policy for policy in result.policies if policy.source.file == source.file]
            folder = Path(texts[at].shown.file).parent
            settings = settings_in.get(folder) or settings_in.setdefault(folder, settings_for(folder))
            opinions = lint(source, tree, policies, plugins, settings, overlays, most)
            own = tuple(in_order([*wrong, *opinions]))
            text = texts[at]
            in_file = [text.placed(replace(one, file=text.shown.file)) for one in own]
            shown = (*in_file, *(of_params if at == group[0] else ()))
            found[at] = Linted(text, shown, own, tuple(policies))
    if params:
        _each_has_a_policy(params, loaded)
    return [*(found[at] for at in range(len(texts))), *unnamed]


_B = TypeVar("_B", syntax.Library, syntax.Policy, syntax.Overlay)
_ROUNDS = 3
"""How often members that are wrong are left out: what names one of them is wrong without it."""


def _with_all(
    result: Checked, parsed: Sequence[Parsed], own: int, plugins: Plugins
) -> tuple[Checked, Iterator[Linted]]:
    """The result with the policies that only errors in files beside them keep out, made without the members that are
    wrong there; and those errors, where that was not enough.

    Arguments:
        parsed: the files that were checked; the first `own` are the named ones.
    """
    again, beside = result, {source.file: source for source, *_ in parsed[own:]}
    for _ in range(_ROUNDS):
        wrong = [finding for finding in again.findings if finding.file in beside]
        if not wrong or not _is_silent(result, again, parsed[:own]):
            break
        mended = [(source, _without(source, tree, wrong), ()) for source, tree, _ in parsed[own:]]
        parsed = [*parsed[:own], *mended]
        again = checked_trees(parsed, plugins)
    silent = _is_silent(result, again, parsed[:own])
    return result._replace(policies=again.policies), _errors(result, beside.values() if silent else ())


def _is_silent(result: Checked, again: Checked, named: Iterable[Parsed]) -> bool:
    """Whether a policy of a file without a finding is left out."""
    wrong = {finding.file for finding in result.findings}
    known = {(policy.source.file, policy.span) for policy in again.policies}
    files = [(source.file, tree) for source, tree, _ in named if source.file not in wrong]
    return any((file, policy.span) not in known for file, tree in files for policy in tree.policies)


def _without(source: Source, tree: syntax.File, wrong: Iterable[Diagnostic]) -> syntax.File:
    """A file without the members that findings are about, and without those that do not parse."""
    starts = sorted(finding.span.start for finding in wrong if finding.file == source.file)

    def mended(block: _B) -> _B:
        spans = [(one, one.span) for one in block.members]
        good = (one for one, span in spans if bisect_left(starts, span.start) == bisect_left(starts, span.end))
        return replace(block, members=tuple(good), broken=())

    return replace(
        tree,
        libraries=tuple(map(mended, tree.libraries)),
        policies=tuple(map(mended, tree.policies)),
        overlays=tuple(map(mended, tree.overlays)),
    )


def _errors(result: Checked, sources: Iterable[Source]) -> Iterator[Linted]:
    """What is wrong in files that were not named; without fixes, as these files are not to be changed."""
    for source in sources:
        wrong = tuple(replace(one, fix=None) for one in result.findings if one.file == source.file)
        if has_errors(wrong):
            yield Linted(PolicyText(source, source), wrong, wrong)


def _each_has_a_policy(params: Mapping[str, object], loaded: Iterable[Checked]) -> None:
    """Raises ParamError for a name that no policy has. One with errors might have it: then nothing is said."""
    from policyengine.commands.linting.params_files import is_whole
    from policyengine.compiler.params import ParamError, no_such_param

    known: set[str] = set()
    for result in loaded:
        if not is_whole(result):
            return
        known.update(param.name for policy in result.policies for param in policy.params)
    for name in params:
        if name not in known:
            raise ParamError(no_such_param(name, sorted(known)))


def known_plugins() -> Plugins:
    """What the checker is told of all plugins: of those in the tree as data, unless packages bring more."""
    if not packages_bring_plugins():
        return plugin_facts()
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.compiler.assemble import plugin_facts as facts_of

    return facts_of(installed_registry())


def _with_refusals(result: Checked) -> Checked:
    """The result with what plugins say of arguments that fit their schemas one by one, and not together. Loads the
    plugins only where a policy gives some."""
    given = [(policy, use) for policy in result.policies for use in policy.uses if use.arguments]
    if not given:
        return result
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.framework.plugin_entry import ArgumentError

    registry, found, wrong = installed_registry(), list[Diagnostic](), set[int]()
    for policy, use in given:
        try:
            registry[use.name].build(use.arguments)
        except ArgumentError as error:
            found.append(Diagnostic(WRONG_ARGUMENTS, Severity.ERROR, str(error), policy.source.file, use.span))
            wrong.add(id(policy))
    policies = [policy for policy in result.policies if id(policy) not in wrong]
    return result._replace(policies=policies, findings=in_order([*result.findings, *found]))


def _named(texts: Iterable[PolicyText]) -> Iterator[Source]:
    """The sources, each under a name of its own: a file may be named twice."""
    taken: set[str] = set()
    for number, text in enumerate(texts):
        name = text.source.file if text.source.file not in taken else f"{text.source.file} ({number})"
        taken.add(name)
        yield Source(name, text.source.text)


def _groups(texts: Sequence[PolicyText]) -> Iterator[list[int]]:
    """The numbers of the texts that are loaded together: all policy files, and those of each ConfigMap."""
    groups: dict[tuple[str, int], list[int]] = {}
    for number, text in enumerate(texts):
        holder = (text.shown.file, text.holder) if text.starts else ("", 0)
        groups.setdefault(holder, []).append(number)
    yield from groups.values()


def _overlays(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Policy -> the texts of the overlays on it."""
    found: dict[str, list[str]] = {}
    for source in sources:
        if "overlay" in source.text:
            for overlay in parse_file(source)[0].overlays:
                found.setdefault(overlay.policy.text, []).append(source.slice(overlay.span))
    return found


def _beside(texts: Iterable[PolicyText]) -> Iterator[tuple[Source, bool]]:
    """The policy files in the folders of the texts, without these themselves; whether they are loaded with them, which
    those are where a text of their folder imports or overlays something."""
    folders: dict[Path, bool] = {}
    known: set[str] = set()
    for text in texts:
        file = Path(text.shown.file)
        known.add(os.path.realpath(file))
        is_wanted = "import" in text.source.text or "overlay" in text.source.text
        folders[file.parent] = folders.get(file.parent, False) or is_wanted
    for folder, is_wanted in folders.items():
        for file in sorted(folder.glob("*.policy")):
            real = os.path.realpath(file)  # unlike `resolve`, it takes a link to itself
            if real not in known:
                known.add(real)
                try:
                    yield read_source(file), is_wanted
                except SourceError:
                    continue  # it was not asked for; whoever lints it is told
