"""What checking the members of one policy takes, and what several of them have in common: `when`, texts,
reads, keys to order by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from policyengine.language import ir, syntax
from policyengine.language.checking.block_names import BlockNames
from policyengine.language.checking.check_codes import OUT_OF_REACH, WRONG_TYPE
from policyengine.language.checking.context import Context, Report
from policyengine.language.checking.expression import ExpressionChecker
from policyengine.language.checking.intervals import Intervals
from policyengine.language.diagnostics import Source
from policyengine.language.ir.ir_walk import extent, fields, is_error
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DOUBLE, DURATION, INT, QOS, STRING, TIMESTAMP, Kind, Shape, Type
from policyengine.language.values import with_article

Path = tuple[str, ...]

OF_THE_POD = frozenset({"pod", "podGroup"})
"""What a queue key and a gang's fields may read: it stays while the pod waits."""


@dataclass(frozen=True)
class PolicyScope:
    """What checking the members of one policy, or of one overlay on it, takes."""

    source: Source
    report: Report
    names: BlockNames
    checker: ExpressionChecker
    intervals: Intervals
    when: ir.Expr | None = None
    """An overlay's `when`, which is and-ed to that of each of its rules."""
    file: str = ""
    """The file an overlay stands in, '' for the policy's own."""

    def known(self, context: Context, *true: ir.Expr | None) -> Context:
        """The context behind conditions that hold."""
        for expr in true:
            if expr is not None:
                context = context.behind(expr, True, self.names)
        return context

    def typed(self, expr: syntax.Expr, context: Context, wanted: Type, what: str) -> ir.Expr | None:
        """An expression of a type, None (reported) otherwise."""
        checked = self.checker.check(expr, context, wanted)
        if is_error(checked):
            return None
        if checked.type != wanted:
            hint = "; it may be empty: add `.orValue(…)`" if checked.type.kind is Kind.OPTIONAL else ""
            self.report.error(WRONG_TYPE, f"{what} is {with_article(wanted)}, this is {checked.type}{hint}", expr.span)
            return None
        return checked

    def ends_of(self, ref: ir.ParamRef) -> list[int]:
        """The values and bounds that are known of an int param."""
        param = self.names.definitions.params[ref.name]
        ends = [param.default, *(param.values or ()), param.minimum, param.maximum]
        return [end for end in ends if isinstance(end, int)]

    def reads_no_node(self, expr: ir.Expr, what: str) -> bool:
        """Whether the expression has one value for all nodes; reported otherwise."""
        if expr.shape is Shape.SCALAR:
            return True
        paths = [path for path in self.names.reads(expr) if path[0] in ("node", "victim")]
        path, span = self._place(expr, paths or [("node",)])
        self.report.error(OUT_OF_REACH, f"{what} reads no node, and `{path}` is read from the node", span)
        return False

    def _place(self, expr: ir.Expr, paths: Iterable[tuple[str, ...]]) -> tuple[str, Span]:
        """One of the paths that the expression reads, and where: in the expression itself, or through a let of it."""
        wanted = sorted(paths)
        for read in fields(expr):
            if read.path in wanted:
                return ".".join(read.path), read.span
        return ".".join(wanted[0]), expr.span

    def reads_only(self, expr: ir.Expr, what: str, allowed: Callable[[Path], bool], words: str) -> bool:
        """Whether every path the expression reads is allowed; reported otherwise, with `words` for what is."""
        others = [path for path in self.names.reads(expr) if not allowed(path)]
        if others:
            path, span = self._place(expr, others)
            self.report.error(OUT_OF_REACH, f"{what} reads only {words}, and `{path}` is none of them", span)
        return not others

    def reads_the_pod(self, expr: ir.Expr, what: str) -> bool:
        """Whether the expression reads pod, podGroup and params alone; reported otherwise."""
        return self.reads_only(expr, what, lambda path: path[0] in OF_THE_POD, "pod, podGroup and params")


def check_when(
    scope: PolicyScope, when: syntax.Expr | None, context: Context, *, node: bool = False
) -> tuple[ir.Expr | None, bool]:
    """A rule's `when`, and whether it is in order. `node`: whether a node is chosen by then, and may be read."""
    if when is None:
        return scope.when, True
    checked = scope.typed(when, scope.known(context, scope.when), BOOL, "`when`")
    if checked is None or not (node or scope.reads_no_node(checked, "`when`")):
        return None, False
    return _both(scope.when, checked), True


def _both(outer: ir.Expr | None, own: ir.Expr) -> ir.Expr:
    if outer is None:
        return own
    return ir.Logic(type=BOOL, span=own.span, **extent(outer, own), op="&&", operands=(outer, own))


def check_template(scope: PolicyScope, written: syntax.Template, context: Context) -> ir.Template | None:
    """A string with expressions filled in, None (reported) where one is wrong."""
    parts: list[str | ir.Expr] = []
    good = True
    for part in written.parts:
        if isinstance(part, str):
            parts.append(part)
            continue
        checked = scope.checker.check(part, context)
        parts.append(checked)
        good = good and not is_error(checked)
        if not is_error(checked) and _has_object(checked.type):
            message = f"{with_article(checked.type)} cannot be shown; name a field of it"
            scope.report.error(WRONG_TYPE, message, part.span)
            good = False
    return ir.Template(parts=tuple(parts), span=written.span) if good else None


def _has_object(type_: Type) -> bool:
    return type_.kind is Kind.OBJECT or any(map(_has_object, type_.args))


# --- keys to order by -------------------------------------------------------------------------------------


def check_order_key(
    scope: PolicyScope, key: syntax.OrderKey, context: Context, in_place: Callable[[ir.Expr], bool]
) -> ir.OrderKey | None:
    """A key, None (reported) for a wrong one. `in_place` reports what may not be read here."""
    value = scope.checker.check(key.value, context)
    if is_error(value):
        return None
    content = value.type.args[0] if value.type.kind is Kind.OPTIONAL else value.type
    if not is_ordered(content):
        scope.report.error(WRONG_TYPE, f"{with_article(value.type)} has no order to sort by", key.value.span)
        return None
    if not in_place(value):
        return None
    return ir.OrderKey(value=value, descending=key.descending, missing_first=key.missing == "first", span=key.span)


def is_ordered(type_: Type) -> bool:
    """Whether values of the type have an order."""
    return type_ in (INT, DOUBLE, STRING, BOOL, DURATION, TIMESTAMP, QOS) or type_.is_quantity
