"""The syntax tree of members, test steps and files."""

from __future__ import annotations

from typing import Literal as OneOf

from msgspec import Struct

from policyengine.language.syntax.expression_nodes import Expr, MapLiteral, Node, Span, Template

_NOWHERE = Span(0, 0)


class Member(Node, frozen=True, kw_only=True):
    """A member of a policy, library or overlay. `doc` holds its `///` comment, '' without one."""

    doc: str = ""
    keyword_span: Span = _NOWHERE


class NameText(Node, frozen=True, kw_only=True):
    """A quoted name (`"memory-headroom"`) or a bare one, with its place."""

    text: str


class Scheduler(Member, frozen=True, kw_only=True):
    """`scheduler "name"`."""

    name: NameText


class Base(Member, frozen=True, kw_only=True):
    """`base kubernetes|filters|none`."""

    name: NameText


class Share(Member, frozen=True, kw_only=True):
    """`share N`."""

    value: Expr


class TypeRef(Node, frozen=True, kw_only=True):
    """`int`, `list(string)`, `map(string, int)`, `optional(cpu)`."""

    name: str
    args: tuple[TypeRef, ...] = ()


class Param(Member, frozen=True, kw_only=True):
    """`param name: type = e [range [a, b]] [values [a, b, c]]`."""

    name: NameText
    type: TypeRef
    default: Expr
    range: tuple[Expr, Expr] | None = None
    values: tuple[Expr, ...] | None = None


class Let(Member, frozen=True, kw_only=True):
    """`let name = e`."""

    name: NameText
    value: Expr


class FunctionParameter(Node, frozen=True, kw_only=True):
    """`a: T` of a function."""

    name: NameText
    type: TypeRef


class Function(Member, frozen=True, kw_only=True):
    """`function f(a: T): T = e`."""

    name: NameText
    parameters: tuple[FunctionParameter, ...]
    result: TypeRef
    body: Expr


class OrderKey(Node, frozen=True, kw_only=True):
    """`e [asc|desc] [missing first|last]`."""

    value: Expr
    descending: bool = False
    missing: OneOf["first", "last"] | None = None


class Queue(Member, frozen=True, kw_only=True):
    """`queue { order by … [fair by e [weight {…}]] backoff A .. B flush D }`."""

    order: tuple[OrderKey, ...] = ()
    fair: Expr | None = None
    fair_weights: MapLiteral | None = None
    backoff: tuple[Expr, Expr] | None = None
    flush: Expr | None = None


class Use(Member, frozen=True, kw_only=True):
    """`use Plugin [weight N] { args }`."""

    plugin: NameText
    weight: Expr | None = None
    arguments: MapLiteral | None = None


class Disable(Member, frozen=True, kw_only=True):
    """`disable Plugin`."""

    plugin: NameText


class Require(Node, frozen=True, kw_only=True):
    """`require e [else "…"] [on error e]`."""

    condition: Expr
    otherwise: Template | None = None
    on_error: Expr | None = None


class Rule(Member, frozen=True, kw_only=True):
    """A member with a quoted name, for the pods that meet its `when`."""

    name: NameText
    when: Expr | None


class Filter(Rule, frozen=True, kw_only=True):
    """`filter "name" [when e] { require … }`."""

    requires: tuple[Require, ...]


class Normalize(Node, frozen=True, kw_only=True):
    """`normalize max|minmax [reverse]`."""

    method: OneOf["max", "minmax"]
    reverse: bool


class Score(Rule, frozen=True, kw_only=True):
    """`score "name" weight N|tier [when e] [normalize max|minmax [reverse]] = e [on error e]`; None for a tier."""

    weight: Expr | None
    normalize: Normalize | None
    value: Expr
    on_error: Expr | None = None


class Gang(Rule, frozen=True, kw_only=True):
    """`gang "name" [when e] { key: e min: e timeout: e [waits: e] [counts: finished] [anyScheduler: true] }`.

    An absent field is None.
    """

    key: Expr | None
    min: Expr | None
    timeout: Expr | None
    waits: Expr | None = None
    counts: Expr | None = None
    any_scheduler: Expr | None = None


class Quota(Rule, frozen=True, kw_only=True):
    """`quota "name" [by e] [when e] { guarantee: {…} limit: {…} borrow: e }`; one of `by` and `when` is there."""

    by: Expr | None
    guarantee: MapLiteral | None
    limit: MapLiteral | None
    borrow: Expr | None


class Permit(Rule, frozen=True, kw_only=True):
    """`permit "name" [when e] { delay: e until: e timeout: e }`."""

    delay: Expr | None
    until: Expr | None
    timeout: Expr | None


class Preempt(Member, frozen=True, kw_only=True):
    """`preempt [when e] { victims: e order by … maxVictims: n }`."""

    when: Expr | None
    victims: Expr | None
    order: tuple[OrderKey, ...]
    max_victims: Expr | None


class OnLog(Member, frozen=True, kw_only=True):
    """`on preFilter [when e] log "…"`."""

    point: NameText
    when: Expr | None
    message: Template


class BindAnnotations(Member, frozen=True, kw_only=True):
    """`bind { annotations: {…} }`: key -> template."""

    annotations: tuple[tuple[NameText, Template], ...]


class TestStep(Node, frozen=True, kw_only=True):
    """What a test gives or expects."""


class GivenNode(TestStep, frozen=True, kw_only=True):
    """`given node "a" { … }`."""

    name: NameText
    fields: MapLiteral | None


class GivenPod(TestStep, frozen=True, kw_only=True):
    """`given pod "p" [on "a"] { … }`."""

    name: NameText
    on: NameText | None
    fields: MapLiteral | None


class GivenNow(TestStep, frozen=True, kw_only=True):
    """`given now "2026-01-05T18:30:00+01:00"`."""

    text: NameText


class GivenParam(TestStep, frozen=True, kw_only=True):
    """`given param x = e`."""

    name: NameText
    value: Expr


class After(TestStep, frozen=True, kw_only=True):
    """`after 10s`: the clock moves on, then the givens and expectations that follow apply."""

    duration: Expr


class ExpectOn(TestStep, frozen=True, kw_only=True):
    """`expect "p" on "a"`."""

    pod: NameText
    node: NameText


class ExpectBefore(TestStep, frozen=True, kw_only=True):
    """`expect "p" before "q"`."""

    pod: NameText
    other: NameText


class ExpectRejected(TestStep, frozen=True, kw_only=True):
    """`expect "p" rejected [on "a"] [by "rule"]`."""

    pod: NameText
    node: NameText | None
    rule: NameText | None


class ExpectWaits(TestStep, frozen=True, kw_only=True):
    """`expect "p" waits`."""

    pod: NameText


class ExpectThat(TestStep, frozen=True, kw_only=True):
    """`expect that e`."""

    condition: Expr


class Test(Member, frozen=True, kw_only=True):
    """`test "name" { given … expect … }`: the steps in order."""

    name: NameText
    steps: tuple[TestStep, ...]


class Import(Member, frozen=True, kw_only=True):
    """`import "safe" [as s]`."""

    name: NameText
    alias: NameText | None


class Block(Member, frozen=True, kw_only=True):
    """What holds members. Broken members are absent; their diagnostics are not."""

    name: NameText
    members: tuple[Member, ...] = ()
    broken: tuple[str, ...] = ()
    """What the broken members would have defined: nobody should report these names as unknown."""


class Library(Block, frozen=True, kw_only=True):
    """`library "safe" { … }`."""


class Policy(Block, frozen=True, kw_only=True):
    """`policy "name" { … }`."""


class Overlay(Block, frozen=True, kw_only=True):
    """`overlay "name" on "policy" [when e] { … }`."""

    policy: NameText
    when: Expr | None


class File(Struct, frozen=True):
    """One `*.policy` file."""

    imports: tuple[Import, ...] = ()
    libraries: tuple[Library, ...] = ()
    policies: tuple[Policy, ...] = ()
    overlays: tuple[Overlay, ...] = ()
