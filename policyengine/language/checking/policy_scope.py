"""What checking the members of one block takes, and what several kinds of them have in common: typed fields, `when`,
texts, keys to order by.

A member comes out of its check whatever was reported about it: what is wrong in it has the type ERROR, and no policy
with an error leaves the checker.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.bounds import Intervals
from policyengine.language.checking.context import Context
from policyengine.language.checking.findings import Report
from policyengine.language.diagnostics import Source
from policyengine.language.ir.ir_walk import extent, fields, is_error
from policyengine.language.types import BOOL, INT, QUANTITIES, Kind, Shape, Type, content_of, holds_object
from policyengine.language.values import with_article

Path = tuple[str, ...]
_ORDERED = QUANTITIES | {Kind.INT, Kind.DOUBLE, Kind.STRING, Kind.BOOL, Kind.DURATION, Kind.TIMESTAMP}


class PolicyScope(Struct, frozen=True):
    """What checking the members of one policy, or of one overlay on it, takes."""

    source: Source
    context: Context
    intervals: Intervals
    when: ir.Expr | None = None
    """An overlay's `when`, which is and-ed to that of each of its rules."""
    file: str = ""
    """The file an overlay stands in, '' for the policy's own."""

    @property
    def report(self) -> Report:
        """Where findings go."""
        return self.context.report

    def inside(self, rule: str, *, victim: bool = False) -> Context:
        """Where the expressions of a rule stand."""
        return replace(self.context, rule=rule, victim=victim)

    def ends_of(self, checked: ir.Expr) -> list[int]:
        """The values that an int literal or param may have, as far as they are known; [] for anything else."""
        if checked.type != INT:
            return []
        if isinstance(checked, ir.ParamRef):
            param = self.context.definitions.params[checked.name]
            ends = [param.default, *(param.values or ()), param.minimum, param.maximum]
        else:
            ends = [checked.value] if isinstance(checked, ir.Const) else []
        return [end for end in ends if isinstance(end, int)]


def typed(context: Context, expr: syntax.Expr, wanted: Type, what: str) -> ir.Expr:
    """An expression of a type."""
    checked = context.check(expr, wanted)
    if is_error(checked) or checked.type == wanted:
        return checked
    hint = "; it may be empty: add `.orValue(…)`" if checked.type.kind is Kind.OPTIONAL else ""
    return context.failed("PE1005", f"{what} is {with_article(wanted)}, this is {checked.type}{hint}", expr.span)


def without_node(context: Context, expr: ir.Expr, what: str) -> ir.Expr:
    """The expression, which has to have one value for all nodes."""
    if expr.shape is Shape.SCALAR:
        return expr
    paths = [path for path in context.definitions.reads(expr) if path[0] in ("node", "victim")]
    words = "{what} reads no node, and `{path}` is read from the node"
    return _misread(context, expr, what, paths or [("node",)], words)


def reading_only(context: Context, expr: ir.Expr, what: str, allowed: Callable[[Path], bool], words: str) -> ir.Expr:
    """The expression, of which every path that it reads has to be allowed; `words` say what is."""
    others = [path for path in context.definitions.reads(expr) if not allowed(path)]
    if not others:
        return expr
    return _misread(context, expr, what, others, f"{{what}} reads only {words}, and `{{path}}` is none of them")


def reading_the_pod(context: Context, expr: ir.Expr, what: str) -> ir.Expr:
    """The expression, which has to read what stays while the pod waits."""
    return reading_only(context, expr, what, lambda path: path[0] in ("pod", "podGroup"), "pod, podGroup and params")


def _misread(context: Context, expr: ir.Expr, what: str, paths: list[Path], words: str) -> ir.Expr:
    """Reports one of the paths where it is read: in the expression itself, or through a let of it."""
    wanted = sorted(paths)
    path, span = next(((read.path, read.span) for read in fields(expr) if read.path in wanted), (wanted[0], expr.span))
    return context.failed("PE1011", words.format(what=what, path=".".join(path)), span)


def check_when(scope: PolicyScope, when: syntax.Expr | None, context: Context, *, node: bool = False) -> ir.Expr | None:
    """A rule's `when`, and-ed to the overlay's. `node`: whether a node is chosen by then, and may be read."""
    if when is None:
        return scope.when
    checked = typed(context.behind(scope.when), when, BOOL, "`when`")
    if not node:
        checked = without_node(context, checked, "`when`")
    if scope.when is None or is_error(checked):
        return checked
    both = (scope.when, checked)
    return ir.Logic(type=BOOL, span=checked.span, **extent(*both), op="&&", operands=both)


def check_template(written: syntax.Template, context: Context) -> ir.Template:
    """A string with expressions filled in."""
    parts = tuple(part if isinstance(part, str) else _shown(part, context) for part in written.parts)
    return ir.Template(parts=parts, span=written.span)


def _shown(part: syntax.Expr, context: Context) -> ir.Expr:
    checked = context.check(part)
    if is_error(checked) or not holds_object(checked.type):
        return checked
    return context.failed("PE1005", f"{with_article(checked.type)} cannot be shown; name a field of it", part.span)


def check_order_key(key: syntax.OrderKey, context: Context, in_place: Callable[[ir.Expr], ir.Expr]) -> ir.OrderKey:
    """A key to order by. `in_place` reports what may not be read here."""
    value = context.check(key.value)
    content = content_of(value.type)
    if not is_error(value):
        if content.kind in _ORDERED:
            value = in_place(value)
        else:
            value = context.failed("PE1005", f"{with_article(value.type)} has no order to sort by", key.value.span)
    return ir.OrderKey(value=value, descending=key.descending, missing_first=key.missing == "first", span=key.span)
