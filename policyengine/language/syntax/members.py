"""The syntax tree of members, test steps and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from policyengine.language.syntax.expressions import Expr, MapLiteral, Node, Span, Template

_NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Node):
    """A member of a policy, library or overlay. `doc` holds its `///` comment, '' without one."""

    doc: str = ""
    keyword_span: Span = _NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class NameText(Node):
    """A quoted name (`"memory-headroom"`) or a bare one, with its place."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler(Member):
    """`scheduler "name"`."""

    name: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Member):
    """`base kubernetes|filters|none`."""

    name: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Member):
    """`share N`."""

    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRef(Node):
    """`int`, `list(string)`, `map(string, int)`, `optional(cpu)`."""

    name: str
    args: tuple[TypeRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Param(Member):
    """`param name: type = e [range [a, b]] [values [a, b, c]]`."""

    name: NameText
    type: TypeRef
    default: Expr
    range: tuple[Expr, Expr] | None = None
    values: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Let(Member):
    """`let name = e`."""

    name: NameText
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionParameter(Node):
    """`a: T` of a function."""

    name: NameText
    type: TypeRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Member):
    """`function f(a: T): T = e`."""

    name: NameText
    parameters: tuple[FunctionParameter, ...]
    result: TypeRef
    body: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderKey(Node):
    """`e [asc|desc] [missing first|last]`."""

    value: Expr
    descending: bool = False
    missing: OneOf["first", "last"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(Member):
    """`queue { order by … [fair by e [weight {…}]] backoff A .. B flush D }`."""

    order: tuple[OrderKey, ...] = ()
    fair: Expr | None = None
    fair_weights: MapLiteral | None = None
    backoff: tuple[Expr, Expr] | None = None
    flush: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use(Member):
    """`use Plugin [weight N] { args }`."""

    plugin: NameText
    weight: Expr | None = None
    arguments: MapLiteral | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disable(Member):
    """`disable Plugin`."""

    plugin: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class Require(Node):
    """`require e [else "…"] [on error e]`."""

    condition: Expr
    otherwise: Template | None = None
    on_error: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Member):
    """`filter "name" [when e] { require … }`."""

    name: NameText
    when: Expr | None
    requires: tuple[Require, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Member):
    """`score "name" weight N [when e] [normalize max|minmax [reverse]] = e [on error e]`."""

    name: NameText
    weight: Expr
    when: Expr | None
    normalize: OneOf["max", "minmax"] | None
    reverse: bool
    value: Expr
    on_error: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang(Member):
    """`gang "name" [when e] { key: e min: e timeout: e [waits: e] }`; an absent field is None."""

    name: NameText
    when: Expr | None
    key: Expr | None
    min: Expr | None
    timeout: Expr | None
    waits: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota(Member):
    """`quota "name" when e { guarantee: {…} limit: {…} borrow: e }`."""

    name: NameText
    when: Expr | None
    guarantee: MapLiteral | None
    limit: MapLiteral | None
    borrow: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit(Member):
    """`permit "name" [when e] { delay: e until: e timeout: e }`."""

    name: NameText
    when: Expr | None
    delay: Expr | None
    until: Expr | None
    timeout: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt(Member):
    """`preempt [when e] { victims: e order by … maxVictims: n }`."""

    when: Expr | None
    victims: Expr | None
    order: tuple[OrderKey, ...]
    max_victims: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLog(Member):
    """`on preFilter [when e] log "…"`."""

    point: NameText
    when: Expr | None
    message: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAnnotations(Member):
    """`bind { annotations: {…} }`: key -> template."""

    annotations: tuple[tuple[NameText, Template], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNode(Node):
    """`given node "a" { … }`."""

    name: NameText
    fields: MapLiteral | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPod(Node):
    """`given pod "p" [on "a"] { … }`."""

    name: NameText
    on: NameText | None
    fields: MapLiteral | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNow(Node):
    """`given now "2026-01-05T18:30:00+01:00"`."""

    text: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenParam(Node):
    """`given param x = e`."""

    name: NameText
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class After(Node):
    """`after 10s`: the clock moves on, then the givens and expectations that follow apply."""

    duration: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectOn(Node):
    """`expect "p" on "a"`."""

    pod: NameText
    node: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectBefore(Node):
    """`expect "p" before "q"`."""

    pod: NameText
    other: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectRejected(Node):
    """`expect "p" rejected [on "a"] [by "rule"]`."""

    pod: NameText
    node: NameText | None
    rule: NameText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectWaits(Node):
    """`expect "p" waits`."""

    pod: NameText


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectThat(Node):
    """`expect that e`."""

    condition: Expr


TestStep = (
    GivenNode
    | GivenPod
    | GivenNow
    | GivenParam
    | After
    | ExpectOn
    | ExpectBefore
    | ExpectRejected
    | ExpectWaits
    | ExpectThat
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Test(Member):
    """`test "name" { given … expect … }`: the steps in order."""

    name: NameText
    steps: tuple[TestStep, ...]


# --- file level ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Import(Member):
    """`import "safe" [as s]`."""

    name: NameText
    alias: NameText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Library(Member):
    """`library "safe" { … }`."""

    name: NameText
    members: tuple[Member, ...]
    broken: tuple[str, ...] = ()
    """What the broken members would have defined: nobody should report these names as unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Member):
    """`policy "name" { … }`. Broken members are absent; their diagnostics are not."""

    name: NameText
    members: tuple[Member, ...]
    broken: tuple[str, ...] = ()
    """What the broken members would have defined: nobody should report these names as unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay(Member):
    """`overlay "name" on "policy" [when e] { … }`."""

    name: NameText
    policy: NameText
    when: Expr | None
    members: tuple[Member, ...]
    broken: tuple[str, ...] = ()
    """What the broken members would have defined: nobody should report these names as unknown."""


@dataclass(frozen=True, slots=True)
class File:
    """One `*.policy` file."""

    imports: tuple[Import, ...] = ()
    libraries: tuple[Library, ...] = ()
    policies: tuple[Policy, ...] = ()
    overlays: tuple[Overlay, ...] = ()
