"""What the automaton calls for the rules of a `test`: what is given and what is expected, in order."""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.parsing.field_actions import Fields
from policyengine.language.parsing.member_actions import MemberActions
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Expr, Member, NameText, Span, TestStep


class Actions(MemberActions):
    """All actions of the grammar: those of tests here, the others inherited."""

    def test(self, start: int, end: int, name: Token, *steps: TestStep) -> Member:
        return syntax.Test(span=Span(start, end), name=self.text(name), steps=steps)

    def given_node(self, start: int, end: int, name: Token, fields: Fields | None) -> TestStep:
        found = self.as_map(fields) if fields else None
        return syntax.GivenNode(span=Span(start, end), name=self.text(name), fields=found)

    def given_pod(self, start: int, end: int, name: Token, node: Token | None, fields: Fields | None) -> TestStep:
        found = self.as_map(fields) if fields else None
        place = self.text(node) if node else None
        return syntax.GivenPod(span=Span(start, end), name=self.text(name), on=place, fields=found)

    def given_now(self, start: int, end: int, moment: Token) -> TestStep:
        return syntax.GivenNow(span=Span(start, end), text=self.text(moment))

    def given_param(self, start: int, end: int, name: NameText, value: Expr) -> TestStep:
        return syntax.GivenParam(span=Span(start, end), name=name, value=value)

    def after(self, start: int, end: int, duration: Expr) -> TestStep:
        return syntax.After(span=Span(start, end), duration=duration)

    def expect_on(self, start: int, end: int, pod: Token, node: Token) -> TestStep:
        return syntax.ExpectOn(span=Span(start, end), pod=self.text(pod), node=self.text(node))

    def expect_before(self, start: int, end: int, pod: Token, other: Token) -> TestStep:
        return syntax.ExpectBefore(span=Span(start, end), pod=self.text(pod), other=self.text(other))

    def expect_rejected(self, start: int, end: int, pod: Token, node: Token | None, rule: Token | None) -> TestStep:
        where, by = self.text(node) if node else None, self.text(rule) if rule else None
        return syntax.ExpectRejected(span=Span(start, end), pod=self.text(pod), node=where, rule=by)

    def expect_waits(self, start: int, end: int, pod: Token) -> TestStep:
        return syntax.ExpectWaits(span=Span(start, end), pod=self.text(pod))

    def expect_that(self, start: int, end: int, condition: Expr) -> TestStep:
        return syntax.ExpectThat(span=Span(start, end), condition=condition)
