"""The check phase: parsed files in, checked policies and every finding out.

Files that are loaded together are checked together: libraries first, each after those it imports, then each policy
with the overlays on it. Each member is checked whatever is wrong with the others. A policy comes out only if
nothing in it, on it or under it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.findings import Report
from policyengine.language.checking.libraries import File, Libraries, overlays_of
from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.checking.policy_checks import PolicyCheck
from policyengine.language.checking.setting_checks import check_scheduler
from policyengine.language.diagnostics import Diagnostic, Related, Source, in_order
from policyengine.language.parsing.tokens import MAX_FINDINGS
from policyengine.language.syntax import Span
from policyengine.language.types import Type


def check_files(
    files: Sequence[tuple[syntax.File, Source]], plugins: Plugins, types: dict[str, Mapping[Span, Type]] | None = None
) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """Checks files that are loaded together.

    Arguments:
        files: what `parse_file` made of each source; its findings are not repeated here. The names of the files differ.
        plugins: every plugin a policy may name.
        types: filled with the type of every expression that was checked and is no error, by file and place.

    Returns:
        The policies without errors in the order they are written, and the findings in the order of the text.
    """
    together = [File(tree, source, Report(source.file)) for tree, source in files]
    libraries = Libraries(together)
    overlays = overlays_of(together)
    policies = [
        PolicyCheck(file, policy, overlays.get(id(policy), ()), libraries, plugins).checked()
        for file in together
        for policy in file.tree.policies
    ]
    for file in together:
        _each_once(file.report, file.tree.policies)
    if types is not None:
        types.update((file.source.file, file.report.types) for file in together)
    found = [finding for file in together for finding in _first(file.report)]
    return [policy for policy in policies if policy is not None], in_order(found)


def _first(report: Report) -> Iterator[Diagnostic]:
    """The findings of a file, of many the first."""
    found = in_order(report.diagnostics)
    yield from found[:MAX_FINDINGS]
    if len(found) > MAX_FINDINGS:
        more = Report(report.file)
        more.error("PE2015", f"more than {MAX_FINDINGS} mistakes: the rest is not shown", found[MAX_FINDINGS].span)
        yield from more.diagnostics


def _each_once(report: Report, policies: Iterable[syntax.Policy]) -> None:
    """Reports policies of one name, and those that serve one scheduler."""
    named: dict[str, syntax.Policy] = {}
    serving: dict[str, syntax.Policy] = {}
    for policy in policies:
        name, scheduler = policy.name, check_scheduler(Report(report.file), policy.members)
        if name.text and named.setdefault(name.text, policy) is not policy:
            related = Related(named[name.text].name.span, "taken here")
            report.error("PE2002", f"another policy is called `{name.text}`; rename one", name.span, related=(related,))
        if serving.setdefault(scheduler, policy) is not policy:
            related = Related(serving[scheduler].name.span, "served by this one")
            message = f"two policies serve the scheduler name `{scheduler}`"
            report.error("PE2014", message, name.span, related=(related,))
