"""Lark's tree of a member -> syntax nodes.

Most rules only name the parts of a node: `_NODES` says which. A rule with an action of its own does more. A member's
own span, keyword and doc comment are `parse`'s to put in; it knows where the member begins and ends.
"""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from typing import Literal as OneOf

from lark import Token, Tree

from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic, Edit, Fix
from policyengine.language.parsing.expression_actions import ExpressionActions, span_of
from policyengine.language.parsing.string_templates import parse_template
from policyengine.language.suggestion import closest
from policyengine.language.syntax import Expr, Member, NameText, OrderKey, Span
from policyengine.language.syntax_codes import quoted, syntax_error

Field = tuple[NameText, bool, Expr]
"""A field's name, whether it was quoted, and its value."""
Fields = tuple[Span, tuple[Field, ...]]

FIELDS_OF: Mapping[str, tuple[str, ...]] = {
    "gang": ("key", "min", "timeout", "waits"),
    "quota": ("guarantee", "limit", "borrow"),
    "permit": ("delay", "until", "timeout"),
    "bind": ("annotations",),
}
"""Member -> the names of its fields."""

MAX_FILLED_IN = 10_000
"""Pieces of text and expressions in all messages of a file; each expression is parsed by itself."""

_NODES: Mapping[str, tuple[type[syntax.Node], tuple[str, ...]]] = {
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
"""Rule -> its node, and the node's fields in the order of the rule's parts. A word is a name, fields are a map."""


class Part(NamedTuple):
    """A clause that may come in any order: its name, its place, its value."""

    name: str
    span: Span
    value: Any


class Actions(ExpressionActions):
    """All actions of the grammar: those of members here, those of expressions inherited."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._filled_in = 0

    def _value(self, tree: Tree[Token], parts: list[Any]) -> Any:
        if tree.data not in _NODES:
            return super()._value(tree, parts)
        kind, names = _NODES[tree.data]
        fields = {name: self._part(part) for name, part in zip(names, parts, strict=True)}
        return kind(span=Span(tree.meta.start_pos, tree.meta.end_pos), **fields)

    def _part(self, part: Any) -> Any:
        if isinstance(part, Token):
            return self.name(span_of(part), part)
        return self._as_map(part) if isinstance(part, tuple) else part

    # --- names ----------------------------------------------------------------------------------------

    def name(self, _span: Span, token: Token) -> NameText:
        """A quoted or a bare name."""
        span = span_of(token)
        if token.type == "STRING":
            return NameText(span=span, text=self._text_of(str(token), span))
        self._check_word(token)
        return NameText(span=span, text=str(token))

    def dotted_name(self, span: Span, *parts: Token) -> NameText:
        return NameText(span=span, text=".".join(self.name(span, part).text for part in parts))

    def type_ref(self, span: Span, name: Token, *args: syntax.TypeRef | None) -> syntax.TypeRef:
        present = tuple(arg for arg in args if arg is not None)
        return syntax.TypeRef(span=span, name=self.name(span, name).text, args=present)

    def _template(self, literal: str, span: Span) -> syntax.Template:
        """A string in which `{expr}` is filled in."""
        if not self._check_length(literal, span) or self._filled_in > MAX_FILLED_IN:
            return syntax.Template(span=span, parts=())
        found, findings = parse_template(literal, span.start, self.file)
        self.findings += findings
        self._filled_in += len(found.parts)
        if self._filled_in > MAX_FILLED_IN:
            message = f"the messages of the file have more than {MAX_FILLED_IN:,} parts; split the file"
            self._report("PE0402", message, span)
        return found

    # --- params and functions -------------------------------------------------------------------------

    def param(self, span: Span, name: Token, type_ref: syntax.TypeRef, default: Expr, *limits: Part) -> Member:
        for limit in limits[1:]:
            self._report("PE0302", "a param has one `range` or one list of `values`", limit.span)
        found = {limit.name: limit.value for limit in reversed(limits)}
        return syntax.Param(span=span, name=self.name(span, name), type=type_ref, default=default, **found)

    def param_range(self, span: Span, low: Expr, high: Expr) -> Part:
        return Part("range", span, (low, high))

    def param_values(self, span: Span, *values: Expr | None) -> Part:
        return Part("values", span, values)

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

    def parameters(self, _span: Span, *found: syntax.FunctionParameter) -> tuple[object, ...]:
        return found

    # --- the queue, and preemption --------------------------------------------------------------------

    def queue(self, span: Span, *parts: Part) -> Member:
        found = self._once(parts)
        found["fair"], found["fair_weights"] = found.get("fair", (None, None))
        return syntax.Queue(span=span, order=found.pop("order by", ()), **found)

    def order_by(self, span: Span, *keys: OrderKey) -> Part:
        return Part("order by", span, keys)

    def key(self, span: Span, value: Expr, direction: Token | None, missing: Token | None) -> OrderKey:
        place: OneOf["first", "last"] | None = None
        if missing:
            place = "first" if missing.type == "FIRST" else "last"
        descending = bool(direction and direction.type == "DESC")
        return OrderKey(span=span, value=value, descending=descending, missing=place)

    def fair(self, span: Span, value: Expr, weights: syntax.MapLiteral | None) -> Part:
        return Part("fair", span, (value, weights))

    def backoff(self, span: Span, first: Expr, last: Expr) -> Part:
        return Part("backoff", span, (first, last))

    def flush(self, span: Span, value: Expr) -> Part:
        return Part("flush", span, value)

    def preempt(self, span: Span, when: Expr | None, *parts: Part) -> Member:
        found = self._once(parts)
        return syntax.Preempt(
            span=span,
            when=when,
            victims=found.get("victims"),
            order=found.get("order by", ()),
            max_victims=found.get("maxVictims"),
        )

    def victims(self, span: Span, value: Expr) -> Part:
        return Part("victims", span, value)

    def max_victims(self, span: Span, value: Expr) -> Part:
        return Part("maxVictims", span, value)

    def _once(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in parts:
            if part.name in found:
                self._report("PE0302", f"`{part.name}` is given twice", part.span)
            found.setdefault(part.name, part.value)
        return found

    # --- rules and tests ------------------------------------------------------------------------------

    def filter(self, span: Span, name: Token, when: Expr | None, *requires: syntax.Require) -> Member:
        return syntax.Filter(span=span, name=self.name(span, name), when=when, requires=requires)

    def require(
        self, span: Span, condition: Expr, otherwise: Token | None, _on: Token | None, error: Expr | None
    ) -> syntax.Require:
        message = self._template(str(otherwise), span_of(otherwise)) if otherwise else None
        return syntax.Require(span=span, condition=condition, otherwise=message, on_error=error)

    def score(
        self,
        span: Span,
        name: Token,
        weight: Expr,
        when: Expr | None,
        normalize: tuple[OneOf["max", "minmax"], bool] | None,
        value: Expr,
        _on: Token | None,
        error: Expr | None,
    ) -> Member:
        method, reverse = normalize or (None, False)
        return syntax.Score(
            span=span,
            name=self.name(span, name),
            weight=weight,
            when=when,
            normalize=method,
            reverse=reverse,
            value=value,
            on_error=error,
        )

    def normalize(self, _span: Span, method: Token, reverse: Token | None) -> tuple[OneOf["max", "minmax"], bool]:
        return "max" if method.type == "MAX" else "minmax", reverse is not None

    def on(self, span: Span, point: Token, when: Expr | None, message: Token) -> Member:
        text = self._template(str(message), span_of(message))
        return syntax.OnLog(span=span, point=self.name(span, point), when=when, message=text)

    def test(self, span: Span, name: Token, *steps: syntax.TestStep) -> Member:
        return syntax.Test(span=span, name=self.name(span, name), steps=steps)

    # --- fields ---------------------------------------------------------------------------------------

    def fields(self, span: Span, *found: Field) -> Fields:
        return span, found

    def field(self, span: Span, key: Token, value: Expr) -> Field:
        return self.name(span, key), key.type == "STRING", value

    def gang(self, span: Span, name: Token, when: Expr | None, fields: Fields) -> Member:
        return syntax.Gang(span=span, name=self.name(span, name), when=when, **self._named("gang", fields))

    def quota(self, span: Span, name: Token, when: Expr, fields: Fields) -> Member:
        found = self._named("quota", fields)
        return syntax.Quota(
            span=span,
            name=self.name(span, name),
            when=when,
            guarantee=self._map("guarantee", found["guarantee"]),
            limit=self._map("limit", found["limit"]),
            borrow=found["borrow"],
        )

    def permit(self, span: Span, name: Token, when: Expr | None, fields: Fields) -> Member:
        return syntax.Permit(span=span, name=self.name(span, name), when=when, **self._named("permit", fields))

    def bind(self, span: Span, fields: Fields) -> Member:
        found = self._map("annotations", self._named("bind", fields)["annotations"])
        pairs = [self._annotation(entry) for entry in found.entries] if found else []
        return syntax.BindAnnotations(span=span, annotations=tuple(pair for pair in pairs if pair))

    def _as_map(self, fields: Fields) -> syntax.MapLiteral:
        """A block as the map it stands for; a bare key stays a name, as in any map literal."""
        entries = []
        for key, in_quotes, value in fields[1]:
            left: Expr = syntax.Name(span=key.span, name=key.text)
            if in_quotes:
                left = syntax.Literal(span=key.span, value=key.text)
            entries.append(syntax.MapEntry(span=key.span.to(value.span), key=left, value=value))
        return syntax.MapLiteral(span=fields[0], entries=tuple(entries))

    def _named(self, member: str, fields: Fields) -> dict[str, Any]:
        """The member's fields by name, None for one not given; an unknown or repeated one is reported and left out."""
        found: dict[str, Expr | None] = dict.fromkeys(FIELDS_OF[member])
        for key, _, value in fields[1]:
            if key.text not in found:
                self.findings.append(self._unknown(member, key))
            elif found[key.text] is not None:
                self._report("PE0302", f"{quoted(key.text)} is given twice", key.span)
            else:
                found[key.text] = value
        return found

    def _unknown(self, member: str, key: NameText) -> Diagnostic:
        known, fix = FIELDS_OF[member], None
        near = closest(key.text, known)
        message = f"a {member} has no field {quoted(key.text)}"
        if near:
            fix = Fix(f"write `{near}`", (Edit(key.span, near),))
            message += f"; did you mean `{near}`?"
        else:
            message += f"; it has {', '.join(f'`{name}`' for name in known)}"
        return syntax_error("PE0301", message, self.file, key.span, fix)

    def _map(self, name: str, value: Expr | None) -> syntax.MapLiteral | None:
        """The value of a field that takes a map."""
        if value is None or isinstance(value, syntax.MapLiteral):
            return value
        self._report("PE0303", f"`{name}` takes a map, such as `{{cpu: 4, memory: 8Gi}}`", value.span)
        return None

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
            message = "an annotation's value is a string; fill in what you need with `{expr}`"
            self._report("PE0303", message, value.span)
            return None
        return NameText(span=key.span, text=name), self._template(written, value.span)
