"""The parts of a member -> syntax nodes, by the nodes and actions of its rules.

A member's own span, keyword and doc comment are `parse`'s to put in; it knows where the member begins and ends.
"""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic, listed, replacing
from policyengine.language.parsing.expression_actions import NODES, ExpressionActions, Reduction, Rows
from policyengine.language.parsing.literal_values import LiteralError, decode_text, template_parts
from policyengine.language.parsing.member_parser import parse_cut
from policyengine.language.parsing.tokens import Token, relocated, tokenise
from policyengine.language.syntax import Expr, Member, NameText, Span
from policyengine.language.syntax_codes import quoted, syntax_error
from policyengine.suggestion import closest

FIELDS_OF: Mapping[str, tuple[str, ...]] = {
    "gang": ("key", "min", "timeout", "waits", "counts", "anyScheduler"),
    "quota": ("guarantee", "limit", "borrow"),
    "permit": ("delay", "until", "timeout"),
    "bind": ("annotations",),
}
"""Member -> the names of its fields."""
_MAPS = frozenset({"guarantee", "limit", "annotations"})
"""Fields that take a map."""

_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Categories of characters that no name holds: controls, direction marks and others without a width, line ends."""

MAX_FILLED_IN = 10_000
"""Pieces of text and expressions in all messages of a file; each expression is parsed by itself."""

_NODES: Rows = {
    "import": (syntax.Import, ("name", "alias")),
    "library": (syntax.Library, ("name",)),
    "policy": (syntax.Policy, ("name",)),
    "overlay": (syntax.Overlay, ("name", "policy", "when")),
    "scheduler": (syntax.Scheduler, ("name",)),
    "base": (syntax.Base, ("name",)),
    "share": (syntax.Share, ("value",)),
    "use": (syntax.Use, ("plugin", "weight", "arguments")),
    "disable": (syntax.Disable, ("plugin",)),
    "let": (syntax.Let, ("name", "value")),
    "parameter": (syntax.FunctionParameter, ("name", "type")),
    "filter": (syntax.Filter, ("name", "when", "*requires")),
    "require": (syntax.Require, ("condition", "otherwise", "on_error")),
    "on": (syntax.OnLog, ("point", "when", "message")),
    "test": (syntax.Test, ("name", "*steps")),
    "given_node": (syntax.GivenNode, ("name", "fields")),
    "given_pod": (syntax.GivenPod, ("name", "on", "fields")),
    "given_now": (syntax.GivenNow, ("text",)),
    "given_param": (syntax.GivenParam, ("name", "value")),
    "after": (syntax.After, ("duration",)),
    "expect_on": (syntax.ExpectOn, ("pod", "node")),
    "expect_before": (syntax.ExpectBefore, ("pod", "other")),
    "expect_rejected": (syntax.ExpectRejected, ("pod", "node", "rule")),
    "expect_waits": (syntax.ExpectWaits, ("pod",)),
    "expect_that": (syntax.ExpectThat, ("condition",)),
}
_CLAUSES = {
    "param_range": "range",
    "param_values": "values",
    "order_by": "order by",
    "fair": "fair",
    "backoff": "backoff",
    "flush": "flush",
    "victims": "victims",
    "max_victims": "maxVictims",
}
"""Rules of clauses that may come in any order -> how they are written."""


class Clause(NamedTuple):
    """A clause that may come in any order: how it is written, its place, its values."""

    name: str
    span: Span
    values: tuple[Any, ...]


class Fields(NamedTuple):
    """Fields in braces: each field's name, whether it was quoted, and its value."""

    span: Span
    found: tuple[tuple[NameText, bool, Expr], ...]


class Actions(ExpressionActions):
    """All nodes and actions of the grammar: those of members here, those of expressions inherited.

    In a node a word is a name, and fields are a map.
    """

    nodes: ClassVar[Rows] = {**NODES, **_NODES}

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._filled_in = 0

    def value(self, reduction: Reduction, span: Span, parts: list[Any]) -> Any:
        if reduction.rule in _CLAUSES:
            return Clause(_CLAUSES[reduction.rule], span, tuple(parts))
        return super().value(reduction, span, parts)

    def _part(self, part: Any) -> Any:
        if isinstance(part, Token):
            return self.name(part.span, part)
        return self._as_map(part) if isinstance(part, Fields) else part

    def name(self, _span: Span, token: Token) -> NameText:
        """A quoted or a bare name."""
        if token.kind == "STRING":
            return self._seen(NameText(span=token.span, text=self._text_of(token.text, token.span)))
        self._check_word(token)
        return NameText(span=token.span, text=token.text)

    def _seen(self, name: NameText) -> NameText:
        """The name, every character of which one sees; reported otherwise."""
        hidden = next((one for one in name.text if unicodedata.category(one) in _HIDDEN), None)
        if hidden is not None:
            message = f"the name holds the character U+{ord(hidden):04X}, which does not show; leave it out"
            self._report("PE0207", message, name.span)
        return name

    def dotted_name(self, span: Span, *parts: Token) -> NameText:
        return NameText(span=span, text=".".join(self.name(span, part).text for part in parts))

    def type_ref(self, span: Span, name: Token, *args: syntax.TypeRef | None) -> syntax.TypeRef:
        present = tuple(arg for arg in args if arg is not None)
        return syntax.TypeRef(span=span, name=self.name(span, name).text, args=present)

    def template(self, _span: Span, literal: Token) -> syntax.Template:
        """A string in which `{expr}` is filled in."""
        return self._template(literal.text, literal.span)

    def _template(self, literal: str, span: Span) -> syntax.Template:
        empty = syntax.Template(span=span, parts=())
        if not self._check_length(literal, span) or self._filled_in > MAX_FILLED_IN:
            return empty
        try:
            text = decode_text(literal)
            pieces = template_parts(text)
        except LiteralError as error:
            self._wrong_literal(error, span)
            return empty
        places = [span.start + offset for offset in text.offsets]
        parts: list[str | Expr] = []
        for piece in pieces:
            if isinstance(piece, str):
                parts.append(piece)
                continue
            cut = tokenise(text.value, self.file, piece.start, piece.end)
            found, findings = parse_cut(relocated(cut, places), self.file)
            self.findings += findings
            parts += [found] if found is not None else []
        self._filled_in += len(parts)
        if self._filled_in > MAX_FILLED_IN:
            message = f"the messages of the file have more than {MAX_FILLED_IN:,} parts; split the file"
            self._report("PE0402", message, span)
        return syntax.Template(span=span, parts=tuple(parts))

    def param(self, span: Span, name: Token, type_ref: syntax.TypeRef, default: Expr, *limits: Clause) -> Member:
        for limit in limits[1:]:
            self._report("PE0302", "a param has one `range` or one list of `values`", limit.span)
        found: dict[str, Any] = {limit.name: limit.values for limit in reversed(limits)}
        return syntax.Param(span=span, name=self.name(span, name), type=type_ref, default=default, **found)

    def function(
        self,
        span: Span,
        name: Token,
        parameters: tuple[syntax.FunctionParameter, ...] | None,
        result: syntax.TypeRef,
        body: Expr,
    ) -> Member:
        named = self.name(span, name)
        return syntax.Function(span=span, name=named, parameters=parameters or (), result=result, body=body)

    def parameters(self, _span: Span, *found: syntax.FunctionParameter) -> tuple[syntax.FunctionParameter, ...]:
        return found

    def queue(self, span: Span, *clauses: Clause) -> Member:
        found = self._once(clauses)
        fair, weights = found.get("fair", (None, None))
        (flush,) = found.get("flush", (None,))
        order, backoff = found.get("order by", ()), found.get("backoff")
        return syntax.Queue(span=span, order=order, fair=fair, fair_weights=weights, backoff=backoff, flush=flush)

    def preempt(self, span: Span, when: Expr | None, *clauses: Clause) -> Member:
        found = self._once(clauses)
        (victims,), (most,) = found.get("victims", (None,)), found.get("maxVictims", (None,))
        return syntax.Preempt(span=span, when=when, victims=victims, order=found.get("order by", ()), max_victims=most)

    def _once(self, clauses: tuple[Clause, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for clause in clauses:
            if clause.name in found:
                self._report("PE0302", f"`{clause.name}` is given twice", clause.span)
            found.setdefault(clause.name, clause.values)
        return found

    def key(self, span: Span, value: Expr, direction: Token | None, missing: Token | None) -> syntax.OrderKey:
        descending = direction is not None and direction.kind == "DESC"
        place: Any = missing and missing.kind.lower()
        return syntax.OrderKey(span=span, value=value, descending=descending, missing=place)

    def on_error(self, _span: Span, _on: Token, value: Expr) -> Expr:
        return value

    def normalize(self, span: Span, method: Token, reverse: Token | None) -> syntax.Normalize:
        how: Any = method.kind.lower()
        return syntax.Normalize(span=span, method=how, reverse=reverse is not None)

    def score(self, span: Span, name: Token, weight: Expr | Token, *rest: Any) -> Member:
        when, normalize, value, on_error = rest
        return syntax.Score(
            span=span,
            name=self.name(span, name),
            weight=None if isinstance(weight, Token) else weight,
            when=when,
            normalize=normalize,
            value=value,
            on_error=on_error,
        )

    def fields(self, span: Span, *found: tuple[NameText, bool, Expr]) -> Fields:
        return Fields(span, found)

    def field(self, span: Span, key: Token, value: Expr) -> tuple[NameText, bool, Expr]:
        return self.name(span, key), key.kind == "STRING", value

    def gang(self, span: Span, name: Token, when: Expr | None, fields: Fields) -> Member:
        found = self._named("gang", fields)
        any_scheduler = found.pop("anyScheduler")
        return syntax.Gang(span=span, name=self.name(span, name), when=when, any_scheduler=any_scheduler, **found)

    def quota(self, span: Span, name: Token, by: Expr | None, when: Expr | None, fields: Fields) -> Member:
        if by is None and when is None:
            self._report("PE0101", "a quota needs `when` or `by` to say which pods it is for", fields.span)
        return syntax.Quota(span=span, name=self.name(span, name), by=by, when=when, **self._named("quota", fields))

    def permit(self, span: Span, name: Token, when: Expr | None, fields: Fields) -> Member:
        return syntax.Permit(span=span, name=self.name(span, name), when=when, **self._named("permit", fields))

    def bind(self, span: Span, fields: Fields) -> Member:
        found = self._named("bind", fields)["annotations"]
        pairs = [self._annotation(entry) for entry in found.entries] if found else []
        return syntax.BindAnnotations(span=span, annotations=tuple(pair for pair in pairs if pair))

    def _as_map(self, fields: Fields) -> syntax.MapLiteral:
        """A block as the map it stands for; a bare key stays a name, as in any map literal."""
        entries = []
        for key, in_quotes, value in fields.found:
            left: Expr = syntax.Name(span=key.span, name=key.text)
            if in_quotes:
                left = syntax.Literal(span=key.span, value=key.text)
            entries.append(syntax.MapEntry(span=key.span.to(value.span), key=left, value=value))
        return syntax.MapLiteral(span=fields.span, entries=tuple(entries))

    def _named(self, member: str, fields: Fields) -> dict[str, Any]:
        """The member's fields by name, None for one not given; a wrong or repeated one is reported and left out."""
        found: dict[str, Expr | None] = dict.fromkeys(FIELDS_OF[member])
        for key, _, value in fields.found:
            if key.text not in found:
                self.findings.append(self._unknown(member, key))
            elif found[key.text] is not None:
                self._report("PE0302", f"{quoted(key.text)} is given twice", key.span)
            else:
                found[key.text] = value
        for name in _MAPS & found.keys():
            value_of = found[name]
            if value_of is not None and not isinstance(value_of, syntax.MapLiteral):
                self._report("PE0303", f"`{name}` takes a map, such as `{{cpu: 4, memory: 8Gi}}`", value_of.span)
                found[name] = None
        return found

    def _unknown(self, member: str, key: NameText) -> Diagnostic:
        known = FIELDS_OF[member]
        near = closest(key.text, known)
        hint = f"did you mean `{near}`?" if near else f"it has {listed(known)}"
        message = f"a {member} has no field {quoted(key.text)}; {hint}"
        return syntax_error("PE0301", message, self.file, key.span, replacing(key.span, near) if near else None)

    def _annotation(self, entry: syntax.MapEntry) -> tuple[NameText, syntax.Template] | None:
        key, value = entry.key, entry.value
        if isinstance(key, syntax.Name):
            name = key.name
        elif isinstance(key, syntax.Literal) and isinstance(key.value, str):
            name = key.value
        else:
            self._report("PE0303", "an annotation's key is a string", key.span)
            return None
        written = self.strings.get(value.span.start)
        if not isinstance(value, syntax.Literal) or not isinstance(value.value, str) or written is None:
            self._report("PE0303", "an annotation's value is a string; fill in what you need with `{expr}`", value.span)
            return None
        return self._seen(NameText(span=key.span, text=name)), self._template(written, value.span)
