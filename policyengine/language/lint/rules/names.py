"""The names of a policy: of its rules, params, lets, functions and imports."""

from __future__ import annotations

import re

from policyengine.language import syntax
from policyengine.language.functions import FUNCTIONS
from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, removal, rule
from policyengine.language.schema import ROOTS

_KINDS = {syntax.Param: "param", syntax.Let: "let", syntax.Function: "function"}


@rule("PE3501", Severity.WARNING)
def unused_name(subject: Subject) -> Findings:
    """a param, let or function that nothing uses

    It costs a reader's attention, and often it is the trace of a mistake: the rule that should read it reads another
    one. `--fix` removes unused lets and functions; a param may be set from outside, so removing it is yours to do.

    By definition: the name stands nowhere else in the policy, and in no overlay on it.
    """
    # A param that only a test sets is unused, too.
    used = subject.words_of_overlays | {node.name for node in subject.nodes_of(syntax.Name)}
    used |= {node.function for node in subject.nodes_of(syntax.Call) if node.target is None}
    for member in subject.written.members:
        if isinstance(member, syntax.Param | syntax.Let | syntax.Function) and member.name.text not in used:
            name = member.name
            fix = None
            if not isinstance(member, syntax.Param):
                fix = removal(subject, member, f"remove `{name.text}`")
            yield Finding(f"the {_KINDS[type(member)]} `{name.text}` is never used", name.span, fix)


@rule("PE3502", Severity.WARNING)
def unused_import(subject: Subject) -> Findings:
    """an import that nothing uses

    No name of the library stands in the file, so the file does not depend on it. `--fix` removes the import.
    """
    for one in subject.file.imports:
        name = (one.alias or one.name).text
        if name not in subject.named_in_file:
            yield Finding(f"nothing of `{name}` is used", one.span, removal(subject, one, "remove the import"))


@rule("PE3503", Severity.WARNING)
def confusable_name(subject: Subject) -> Findings:
    """a name that is easily taken for another one

    The name differs from another name of the policy, from a root of the schema or from a function only in upper and
    lower case or underscores: `gpu_count` beside `gpuCount`, `Node` beside `node`. A slip of the finger then reads the
    wrong one.
    """
    given = {_folded(name): f"the name `{name}` of the schema" for name in ROOTS}
    given |= {_folded(name): f"the function `{name}`" for name in FUNCTIONS if name.isidentifier()}
    seen: dict[str, syntax.NameText] = {}
    for member in subject.written.members:
        if not isinstance(member, syntax.Param | syntax.Let | syntax.Function):
            continue
        name, folded = member.name, _folded(member.name.text)
        if folded in given:
            yield Finding(f"`{name.text}` is easily taken for {given[folded]}", name.span)
        elif folded in seen:
            related = (Related(seen[folded].span, "this one"),)
            yield Finding(f"`{name.text}` is easily taken for `{seen[folded].text}`", name.span, None, related)
        seen.setdefault(folded, name)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@rule("PE3504", Severity.INFO)
def rule_name_style(subject: Subject) -> Findings:
    """a rule's name that is not in kebab-case

    Names of rules stand in events, metrics and `explain` beside those of plugins and of other policies. Words in lower
    case with dashes, `memory-headroom`, need no quoting anywhere and sort together.
    """
    named = syntax.Rule
    names = [subject.written.name, *(member.name for member in subject.written.members if isinstance(member, named))]
    for name in names:
        if not _KEBAB.fullmatch(name.text):
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.text).lower()
            suggestion = re.sub(r"[^a-z0-9]+", "-", words).strip("-")
            hint = f": `{suggestion}`" if suggestion else ""
            yield Finding(f"names of rules are written with dashes{hint}", name.span)


@rule("PE3505", Severity.INFO)
def undocumented_param(subject: Subject) -> Findings:
    """a param without a doc comment

    A param is what others set, from a `params.yaml` or the command line, without reading the policy. A `///` comment
    above it is what they are shown.
    """
    for param in subject.written_as(syntax.Param):
        if not param.doc.strip():
            yield Finding(f"no `///` comment says what `{param.name.text}` is for", param.name.span)
