"""What a rule is: a code, a severity, a page, and a function from a policy to findings. What it looks at: one policy
without errors, as it is written and as it was checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from policyengine.language import ir, syntax
from policyengine.language.bounds import Bounds
from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Edit, Fix, Related, Severity, Source
from policyengine.language.ir.ir_walk import children, fields, key
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.truth import Truth
from policyengine.language.parsing.tokens import tokens_of
from policyengine.language.syntax import Span

__all__ = ["Edit", "Fix", "Related", "Severity", "Span"]

_M = TypeVar("_M")
_NOWHERE = Span(0, 0)
_WORD = re.compile(r"\w+", re.ASCII)


class Place(NamedTuple):
    """An expression of a policy, with what it is there: `when`, `condition`, `value`, `key`, … of which member."""

    what: str
    member: Any
    expr: ir.Expr


class Lookup(NamedTuple):
    """A literal key, as it is written, and the field of a pod or node in whose map it is looked up."""

    field: str
    text: str
    span: Span


@dataclass(frozen=True)
class Subject:
    """One policy. `policy` may hold what other files gave it (imports, overlays); `own` is what is written here."""

    source: Source
    written: syntax.Policy
    policy: ir.Policy
    plugins: Plugins
    settings: Settings
    file: syntax.File
    named_in_file: Set[str]
    """The words that begin names in any block of a file with imports."""
    overlays: Sequence[str] = ()
    """The texts of overlays on the policy that are not loaded with it."""

    # --- as it is checked -------------------------------------------------------------------------------

    @cached_property
    def lets(self) -> Mapping[str, ir.Let]:
        """All lets by name."""
        return {let.name: let for let in self.policy.lets}

    @cached_property
    def params(self) -> Mapping[str, ir.Param]:
        """All params by name."""
        return {param.name: param for param in self.policy.params}

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let, None where there is none."""
        let = self.lets.get(name)
        return let.value if let is not None else None

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of expressions."""
        return Bounds(self.params, self.lets)

    @cached_property
    def truth(self) -> Truth:
        """Which conditions can hold together."""
        return Truth(self.let_value, self.bounds, self.meaning, len(self.file.policies))

    def meaning(self, expr: ir.Expr) -> int:
        """A number that expressions share which mean the same, wherever they stand."""
        return self._meanings.setdefault(key(expr), len(self._meanings))

    @cached_property
    def _meanings(self) -> dict[Hashable, int]:
        return {}

    def paths_in(self, expr: ir.Expr) -> set[tuple[str, ...]]:
        """The fields of the schema that are read in an expression and in the lets it names."""
        return {read.path for read in fields(expr, self.let_value)}

    def own(self, members: tuple[_M, ...]) -> tuple[_M, ...]:
        """Those of the checked members that are written in this policy, not brought in by another file."""
        here = (one for one in members if not getattr(one, "file", ""))
        return tuple(one for one in here if self.holds(getattr(one, "span", _NOWHERE)))

    def holds(self, span: Span) -> bool:
        """Whether a place lies in this policy."""
        written = self.written.span
        return written.start <= span.start < span.end <= written.end

    @property
    def order(self) -> tuple[ir.OrderKey, ...]:
        """The keys of the queue that are written out; not those that stand where none are."""
        return self.policy.queue.order if any(queue.order for queue in self.written_as(syntax.Queue)) else ()

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every expression that stands in a member of the policy, in no order that means anything."""
        policy = self.policy
        rules = (policy.lets, policy.filters, policy.scores, policy.gangs, policy.quotas, policy.permits)
        others = (policy.logs, policy.annotations, self.order)
        members: list[Any] = [member for kind in (*rules, *others) for member in self.own(kind)]
        members += [policy.preempt] if policy.preempt is not None else []
        found = [place for member in members for place in _places(member)]
        if policy.queue.fair_by is not None:
            found.append(Place("fair_by", policy.queue, policy.queue.fair_by))
        return tuple(place for place in found if self.holds(place.expr.span))

    @cached_property
    def _parts(self) -> Mapping[type, list[Any]]:
        return _by_kind(part for place in self.places for part in _within(place.expr))

    def parts_of(self, kind: type[_M]) -> Sequence[_M]:
        """The expressions and parts of one that are written in the policy, whose class is the kind. Where a
        function's body stands for its call, the body is left out: it is written elsewhere."""
        return self._parts.get(kind, ())

    @cached_property
    def lookups(self) -> tuple[Lookup, ...]:
        """The literal keys that are looked up in maps: `labels`, `annotations`, amounts."""
        looking = (*self.parts_of(ir.Index), *self.parts_of(ir.Call))
        return tuple(found for part in looking if (found := _lookup(part)) is not None)

    # --- as it is written -------------------------------------------------------------------------------

    def written_as(self, kind: type[_M]) -> tuple[_M, ...]:
        """The members of a kind."""
        return tuple(member for member in self.written.members if isinstance(member, kind))

    @cached_property
    def _written_nodes(self) -> Mapping[type, list[Any]]:
        return _by_kind(_nodes(self.written))

    def nodes_of(self, kind: type[_M]) -> Sequence[_M]:
        """The nodes of the policy's syntax tree whose class is the kind."""
        return self._written_nodes.get(kind, ())

    def text(self, span: Span) -> str:
        """What is written in a place."""
        return self.source.slice(span)

    @cached_property
    def words_of_overlays(self) -> set[str]:
        """The words in the overlays on the policy: they may name what is written in it."""
        blocks = (source.slice(span) for source, span in self.policy.texts)
        overlays = (*self.overlays, *(block for block in blocks if block.startswith("overlay")))
        return {word for overlay in overlays for word in _WORD.findall(overlay)}


def words_named(file: syntax.File) -> Set[str]:
    """The words that begin names in any block of a file."""
    nodes = [node for block in (*file.libraries, *file.policies, *file.overlays) for node in _nodes(block)]
    written = {node.text.partition(".") for node in nodes if isinstance(node, syntax.NameText)}
    return {node.name for node in nodes if isinstance(node, syntax.Name)} | {word for word, dot, _ in written if dot}


def _places(value: Any) -> Iterator[Place]:
    """The expressions in the fields of a checked member; those of a part (a require) belong to the part."""
    for name in value.__struct_fields__:
        inner = getattr(value, name)
        for item in inner if isinstance(inner, tuple) else (inner,):
            if isinstance(item, ir.Expr):
                yield Place(name, value, item)
            elif isinstance(item, ir.Template):
                yield from (Place(name, value, part) for part in item.parts if not isinstance(part, str))
            elif isinstance(item, Struct) and hasattr(item, "span"):
                yield from _places(item)


def _within(expr: ir.Expr) -> Iterator[ir.Expr]:
    start, end = expr.span.start, expr.span.end
    pending = [expr]
    while pending:
        part = pending.pop()
        yield part
        pending += [one for one in children(part)[::-1] if start <= one.span.start <= one.span.end <= end]


def _nodes(node: syntax.Node) -> Iterator[syntax.Node]:
    pending: list[Any] = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, syntax.Node):
            yield item
            pending += [getattr(item, name) for name in reversed(item.__struct_fields__)]
        elif isinstance(item, tuple):
            pending += item[::-1]


def _by_kind(all_: Iterable[object]) -> dict[type, list[Any]]:
    kinds: dict[type, list[Any]] = {}
    for one in all_:
        kinds.setdefault(one.__class__, []).append(one)
    return kinds


def _lookup(part: ir.Expr) -> Lookup | None:
    match part:
        case ir.Index(operand=operand, key=ir.Const(value=str() as text) as key):
            return Lookup(_field(operand), text, key.span)
        case ir.Call(function="@in", args=(ir.Const(value=str() as text) as key, operand)):
            return Lookup(_field(operand), text, key.span)
        case ir.Call(function="domain", args=(_, ir.Const(value=str() as text) as key)):
            return Lookup("labels", text, key.span)
        case _:
            return None


def _field(operand: ir.Expr) -> str:
    match operand:
        case ir.Field(path=(*_, last)):
            return last
        case ir.Select(name=name):
            return name
        case _:
            return ""


class Finding(NamedTuple):
    """What a rule has found: a sentence, a place, and where it can a fix that keeps the policy's meaning."""

    message: str
    span: Span
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    steps: tuple[Related, ...] = ()
    """How it is known, of what has a proof."""


Findings = Iterator[Finding]
Check = Callable[[Subject], Findings]


class Rule(Struct, frozen=True):
    """One rule. `title` is the first line of its function's docstring, `page` the rest: Markdown."""

    code: str
    severity: Severity
    title: str
    page: str
    check: Check


def rule(code: str, severity: Severity) -> Callable[[Check], Rule]:
    """Makes a rule of the function it decorates, whose docstring is the rule's page.

    Arguments:
        code: `PE3xxx`, never given twice and never given up.
        severity: where no setting says otherwise.
    """

    def made(check: Check) -> Rule:
        title, _, page = cleandoc(check.__doc__ or code).partition("\n")  # `python -OO` leaves no docstring
        return Rule(code, severity, title, page.strip(), check)

    return made


def instead(text: str, *edits: Edit) -> Fix:
    """A safe fix that writes a text."""
    return Fix(f"write `{text}`", edits, safe=True)


def only(whole: Span, part: Span, before: str = "", behind: str = "") -> tuple[Edit, Edit]:
    """Edits that leave only a part of a place, between other texts."""
    return Edit(Span(whole.start, part.start), before), Edit(Span(part.end, whole.end), behind)


def removal(subject: Subject, member: syntax.Member, title: str) -> Fix:
    """A safe fix that takes a member out, with its `///` comment."""
    docs = tokens_of(subject.source).docs(subject.source, member.span.start)
    spans = (*(one.span for one in docs), member.span)
    return Fix(title, tuple(Edit(span, "") for span in spans), safe=True)
