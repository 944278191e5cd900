"""Code actions, formatting and inlay hints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    InlayHint,
    InlayHintKind,
    Range,
    TextEdit,
    WorkspaceEdit,
)

from policyengine.language import ir, syntax
from policyengine.language.diagnostics import Diagnostic, Edit, Fix
from policyengine.language.format import format_source
from policyengine.language.lint.cost import NODES, rule_costs
from policyengine.language.lint.linter import LINT_CODES
from policyengine.language.lint.suppressions import MALFORMED, UNUSED
from policyengine.language.syntax import Span
from policyengine.server.language_server.cursor import blocks_of
from policyengine.server.language_server.project import Reading

FIX_ALL = f"{CodeActionKind.SourceFixAll.value}.policyengine"
MOST_COMPARED = 2000
"""Lines of a file whose formatting is told line by line."""
REASON = "say why"
"""What a new comment gives as the reason, for its author to replace."""


def code_actions(reading: Reading, findings: Sequence[Diagnostic], span: Span, only: Sequence[str]) -> list[CodeAction]:
    """Fixes of the findings that touch a span, comments that allow them, and all safe fixes of the text together.

    Arguments:
        findings: of the text, at their places in it.
        only: the kinds that are asked for; empty for all.
    """
    found: list[CodeAction] = []
    if _asked(only, CodeActionKind.QuickFix.value):
        touched = [one for one in findings if one.span.start <= span.end and span.start <= one.span.end]
        found += [action for finding in touched for action in _quick_fixes(reading, finding)]
    if _asked(only, FIX_ALL) and not reading.text.folded:
        edits = _together(one.fix for one in findings if one.fix is not None and one.fix.safe)
        if edits:
            title = "apply all safe fixes"
            found.append(CodeAction(title, kind=FIX_ALL, edit=_edit(reading, edits)))
    return found


def _asked(only: Sequence[str], kind: str) -> bool:
    return not only or any(kind == one or kind.startswith(f"{one}.") for one in only)


def _quick_fixes(reading: Reading, finding: Diagnostic) -> Iterator[CodeAction]:
    fix = finding.fix
    if reading.text.folded:
        return
    if fix is not None and fix.edits:
        yield CodeAction(
            title=f"{fix.title} ({finding.code})",
            kind=CodeActionKind.QuickFix,
            is_preferred=fix.safe or None,
            edit=_edit(reading, fix.edits),
        )
    if finding.code in LINT_CODES - {MALFORMED, UNUSED} and (comment := _allowing(reading, finding)) is not None:
        yield CodeAction(
            title=f"allow {finding.code} here, with a reason",
            kind=CodeActionKind.QuickFix,
            edit=_edit(reading, [comment]),
        )


def _allowing(reading: Reading, finding: Diagnostic) -> Edit | None:
    """A comment on a line above the finding's; None where that line begins inside of a string."""
    source = reading.source
    start = source.line_start(source.line_column(finding.span.start)[0])
    tokens = reading.cut.tokens
    before = bisect_right(tokens, start, key=lambda token: token.start) - 1
    if before >= 0 and tokens[before].start < start < tokens[before].end:
        return None
    line = source.text[start : finding.span.start]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    at = start + len(indent)
    return Edit(Span(at, at), f"// lint: allow {finding.code} because {REASON}\n{indent}")


def _together(fixes: Iterator[Fix]) -> list[Edit]:
    """The edits of all fixes that do not touch an earlier one's."""
    found: list[Edit] = []
    end = -1
    for fix in sorted((one for one in fixes if one.edits), key=lambda one: min(edit.span.start for edit in one.edits)):
        if min(edit.span.start for edit in fix.edits) > end:
            found += fix.edits
            end = max(edit.span.end for edit in fix.edits)
    return found


def _edit(reading: Reading, edits: Sequence[Edit]) -> WorkspaceEdit:
    return WorkspaceEdit(changes={reading.document.uri: reading.edits(edits)})


def formatting(reading: Reading, wanted: Range | None = None) -> list[TextEdit] | None:
    """The edits that put a file into the one style, or those of them that touch a range.

    None where mistakes keep it from being formatted, and for the texts of a manifest: its layout is YAML's.
    """
    if reading.text.starts:
        return None
    text, findings = format_source(reading.source)
    if findings:
        return None
    found = _line_edits(reading, reading.source.text.splitlines(keepends=True), text.splitlines(keepends=True))
    if wanted is None:
        return found
    return [one for one in found if one.range.start.line <= wanted.end.line and wanted.start.line <= one.range.end.line]


def _line_edits(reading: Reading, before: list[str], after: list[str]) -> list[TextEdit]:
    """The edits from lines to others; of many lines, one edit: comparing them takes the square of their number."""
    starts = [0, *accumulate(map(len, before))]
    many = max(len(before), len(after)) > MOST_COMPARED
    whole = [("replace", 0, len(before), 0, len(after))] if before != after else []
    found = whole if many else SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        TextEdit(reading.range(Span(starts[first], starts[last])), "".join(after[other:end]))
        for tag, first, last, other, end in found
        if tag != "equal"
    ]


def inlay_hints(reading: Reading, asked: Range) -> list[InlayHint]:
    """The types of lets, and what each filter and score of a policy without mistakes costs."""
    costs = _costs(reading)
    types = reading.checked.types[reading.source.file]
    found: list[InlayHint] = []
    for block in blocks_of(reading.tree):
        for member in block.members:
            if isinstance(member, syntax.Let) and member.value.span in types:
                at, label = member.name.span.end, f": {types[member.value.span]}"
                found.append(_hint(reading, at, label, InlayHintKind.Type, "the type of the let"))
            elif isinstance(member, syntax.Filter | syntax.Score) and (member.name.text, member.span) in costs:
                spent = costs[member.name.text, member.span]
                label = f"≈ {spent:.0f} µs" if spent < 1000 else f"≈ {spent / 1000:.1f} ms"
                tip = f"estimated for one decision over {NODES:,} nodes, nothing kept from before"
                found.append(_hint(reading, member.name.span.end, label, None, tip))
    return [one for one in found if asked.start.line <= one.position.line <= asked.end.line]


def _hint(reading: Reading, at: int, label: str, kind: InlayHintKind | None, tip: str) -> InlayHint:
    position = reading.range(Span(at, at)).start
    return InlayHint(position, label, kind=kind, tooltip=tip, padding_left=kind is None)


def _costs(reading: Reading) -> dict[tuple[str, Span], float]:
    """The name and place of each filter and score -> its microseconds."""
    found: dict[tuple[str, Span], float] = {}
    for policy in reading.checked.policies:
        if policy.source.file == reading.source.file:
            lets: dict[str, ir.Expr] = {let.name: let.value for let in policy.lets}
            found |= {(name, span): spent for name, span, spent in rule_costs(policy, lets.get)}
    return found
