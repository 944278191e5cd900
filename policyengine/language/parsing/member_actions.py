"""What the automaton calls for the rules of members: settings, names, queue, rules.

A member's own span, keyword and doc comment are `parse`'s to put in; it knows where the member begins and ends.
"""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

from typing import Any, NamedTuple
from typing import Literal as OneOf

from policyengine.language import syntax
from policyengine.language.parsing.field_actions import FieldActions, Fields
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Expr, Member, NameText, OrderKey, Span


class Part(NamedTuple):
    """A clause that may come in any order: its name, its place, its value."""

    name: str
    span: Span
    value: Any


class MemberActions(FieldActions):
    """An action a rule, under the rule's name."""

    # --- file level -----------------------------------------------------------------------------------

    def import_(self, start: int, end: int, name: Token, alias: Token | None) -> Member:
        known_as = self.bare(alias) if alias else None
        return syntax.Import(span=Span(start, end), name=self.text(name), alias=known_as)

    def library(self, start: int, end: int, name: Token) -> Member:
        return syntax.Library(span=Span(start, end), name=self.text(name), members=())

    def policy(self, start: int, end: int, name: Token) -> Member:
        return syntax.Policy(span=Span(start, end), name=self.text(name), members=())

    def overlay(self, start: int, end: int, name: Token, policy: Token, when: Expr | None) -> Member:
        names = self.text(name), self.text(policy)
        return syntax.Overlay(span=Span(start, end), name=names[0], policy=names[1], when=when, members=())

    # --- settings and names ---------------------------------------------------------------------------

    def scheduler(self, start: int, end: int, name: Token) -> Member:
        return syntax.Scheduler(span=Span(start, end), name=self.text(name))

    def base(self, start: int, end: int, name: Token) -> Member:
        return syntax.Base(span=Span(start, end), name=self.bare(name))

    def share(self, start: int, end: int, value: Expr) -> Member:
        return syntax.Share(span=Span(start, end), value=value)

    def use(self, start: int, end: int, plugin: NameText, weight: Expr | None, fields: Fields | None) -> Member:
        arguments = self.as_map(fields) if fields else None
        return syntax.Use(span=Span(start, end), plugin=plugin, weight=weight, arguments=arguments)

    def disable(self, start: int, end: int, plugin: NameText) -> Member:
        return syntax.Disable(span=Span(start, end), plugin=plugin)

    def param(
        self, start: int, end: int, name: Token, type_ref: syntax.TypeRef, default: Expr, *limits: Part
    ) -> Member:
        found: dict[str, tuple[Expr, ...]] = {}
        for limit in limits:
            if found:
                self._report("PE0302", "a param has one `range` or one list of `values`", limit.span)
            found.setdefault(limit.name, limit.value)
        bounds, values = found.get("range"), found.get("values")
        return syntax.Param(
            span=Span(start, end),
            name=self.bare(name),
            type=type_ref,
            default=default,
            range=(bounds[0], bounds[1]) if bounds else None,
            values=values,
        )

    def param_range(self, start: int, end: int, low: Expr, high: Expr) -> Part:
        return Part("range", Span(start, end), (low, high))

    def param_values(self, start: int, end: int, *values: Expr) -> Part:
        return Part("values", Span(start, end), values)

    def let(self, start: int, end: int, name: Token, value: Expr) -> Member:
        return syntax.Let(span=Span(start, end), name=self.bare(name), value=value)

    def function(
        self,
        start: int,
        end: int,
        name: Token,
        parameters: tuple[syntax.FunctionParameter, ...] | None,
        result: syntax.TypeRef,
        body: Expr,
    ) -> Member:
        span, named = Span(start, end), self.bare(name)
        return syntax.Function(span=span, name=named, parameters=parameters or (), result=result, body=body)

    def parameters(self, _start: int, _end: int, *found: syntax.FunctionParameter) -> tuple[object, ...]:
        return found

    def parameter(self, start: int, end: int, name: Token, type_ref: syntax.TypeRef) -> syntax.FunctionParameter:
        return syntax.FunctionParameter(span=Span(start, end), name=self.bare(name), type=type_ref)

    # --- the queue, and preemption --------------------------------------------------------------------

    def queue(self, start: int, end: int, *parts: Part) -> Member:
        found = self._once(parts)
        fair, weights = found.get("fair", (None, None))
        return syntax.Queue(
            span=Span(start, end),
            order=found.get("order by", ()),
            fair=fair,
            fair_weights=weights,
            backoff=found.get("backoff"),
            flush=found.get("flush"),
        )

    def order_by(self, start: int, end: int, *keys: OrderKey) -> Part:
        return Part("order by", Span(start, end), keys)

    def key(self, start: int, end: int, value: Expr, direction: Token | None, missing: Token | None) -> OrderKey:
        place: OneOf["first", "last"] | None = None
        if missing:
            place = "first" if missing.kind == "FIRST" else "last"
        descending = bool(direction and direction.kind == "DESC")
        return OrderKey(span=Span(start, end), value=value, descending=descending, missing=place)

    def fair(self, start: int, end: int, value: Expr, weights: syntax.MapLiteral | None) -> Part:
        return Part("fair", Span(start, end), (value, weights))

    def backoff(self, start: int, end: int, first: Expr, last: Expr) -> Part:
        return Part("backoff", Span(start, end), (first, last))

    def flush(self, start: int, end: int, value: Expr) -> Part:
        return Part("flush", Span(start, end), value)

    def preempt(self, start: int, end: int, when: Expr | None, *parts: Part) -> Member:
        found = self._once(parts)
        return syntax.Preempt(
            span=Span(start, end),
            when=when,
            victims=found.get("victims"),
            order=found.get("order by", ()),
            max_victims=found.get("maxVictims"),
        )

    def victims(self, start: int, end: int, value: Expr) -> Part:
        return Part("victims", Span(start, end), value)

    def max_victims(self, start: int, end: int, value: Expr) -> Part:
        return Part("maxVictims", Span(start, end), value)

    def _once(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in parts:
            if part.name in found:
                self._report("PE0302", f"`{part.name}` is given twice", part.span)
            found.setdefault(part.name, part.value)
        return found

    # --- rules ----------------------------------------------------------------------------------------

    def filter(self, start: int, end: int, name: Token, when: Expr | None, *requires: syntax.Require) -> Member:
        return syntax.Filter(span=Span(start, end), name=self.text(name), when=when, requires=requires)

    def require(
        self, start: int, end: int, condition: Expr, otherwise: Token | None, _on: Token | None, error: Expr | None
    ) -> syntax.Require:
        message = self.template(otherwise) if otherwise else None
        return syntax.Require(span=Span(start, end), condition=condition, otherwise=message, on_error=error)

    def score(
        self,
        start: int,
        end: int,
        name: Token,
        weight: Expr,
        when: Expr | None,
        normalize: tuple[OneOf["max", "minmax"], bool] | None,
        value: Expr,
        _on: Token | None,
        error: Expr | None,
    ) -> Member:
        return syntax.Score(
            span=Span(start, end),
            name=self.text(name),
            weight=weight,
            when=when,
            normalize=normalize[0] if normalize else None,
            reverse=bool(normalize and normalize[1]),
            value=value,
            on_error=error,
        )

    def normalize(
        self, _start: int, _end: int, method: Token, reverse: Token | None
    ) -> tuple[OneOf["max", "minmax"], bool]:
        return "max" if method.kind == "MAX" else "minmax", reverse is not None

    def on(self, start: int, end: int, point: Token, when: Expr | None, message: Token) -> Member:
        text = self.template(message)
        return syntax.OnLog(span=Span(start, end), point=self.bare(point), when=when, message=text)
