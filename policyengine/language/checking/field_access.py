"""Names, field selection and indexing: what a path means, and whether what it reads is sure to be there."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.attributes import Attribute
from policyengine.language.checking import foreign_words
from policyengine.language.checking.cluster_aggregates import check_domain_field, field_at, member_of
from policyengine.language.checking.context import Context
from policyengine.language.checking.definitions import field_name, key_fact, size_fact
from policyengine.language.checking.findings import error_at
from policyengine.language.diagnostics import Edit, Fix, listed, replacing
from policyengine.language.ir.ir_walk import extent, is_cluster_list, is_error
from policyengine.language.schema import DOMAIN, ROOTS, attribute, object_info
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, INT, MEMORY, STRING, Kind, Shape, Type, content_of, map_of, optional_of
from policyengine.language.values import with_article

_PARTS = ("metadata", "spec", "status")
"""The parts of an object of Kubernetes, none of which is a field here."""
_OWN_FIELDS = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "storage", "storage": "storage"}


def check_name(context: Context, node: syntax.Name, expected: Type | None = None) -> ir.Expr:
    """A variable, let, param or root of the schema. `expected`: STRING where a word was probably meant as text."""
    name, span = node.name, node.span
    if not node.absolute and name in context.locals:
        return replace(context.locals[name], span=span)
    found = _named(context, name, span)
    if found is not None:
        return found
    if name == "victim" and not context.victim:
        return context.failed("PE1011", "`victim` is read in `preempt` only", span)
    if name in ROOTS:
        return field_at((name,), span)
    if name in context.names.visible:
        return error_at(span)  # a param or let that was reported
    return _no_name(context, name, span, expected)


def _no_name(context: Context, name: str, span: Span, expected: Type | None) -> ir.Expr:
    if name in foreign_words.NULLS:
        return context.failed("PE1008", foreign_words.NO_NULL, span)
    message, meant = f"nothing is called `{name}`", foreign_words.NAMES.get(name)
    if meant is not None:
        return context.failed("PE1001", f"{message}; write `{meant}`", span, replacing(span, meant))
    text = f'; text stands in quotes: `"{name}"`'
    if expected == STRING:
        return context.failed("PE1001", message + text, span, replacing(span, f'"{name}"'))
    known = chain(ROOTS, context.names.visible, context.locals)
    fields = [f"`{root}.{name}`" for root in ("node", "pod") if attribute((root, name)) is not None]
    hint = f"; write {' or '.join(fields)}" if fields else text
    return context.report.unknown("PE1001", message, span, name, known, otherwise=hint)


def _named(context: Context, name: str, span: Span) -> ir.Expr | None:
    """A let or param, by the name that is written; None where there is none."""
    let = context.names.let(name)
    if let is not None:
        value = let.value
        return ir.LetRef(type=value.type, span=span, shape=value.shape, reach=value.reach, name=let.name)
    param = context.names.param(name)
    if param is not None:
        return ir.ParamRef(type=param.type, span=span, name=param.name)
    if context.names.function(name) is not None:
        return context.failed("PE1003", f"`{name}` is a function: write `{name}(…)`", span)
    return None


def library_of(context: Context, operand: syntax.Expr | None) -> str | None:
    """The imported library that an expression names; None where it names none."""
    if not isinstance(operand, syntax.Name) or operand.name in context.locals:
        return None
    return operand.name if operand.name in context.names.libraries else None


def not_in_library(context: Context, library: str, name: str, span: Span) -> ir.Expr:
    """Reports what an imported library does not have, unless the library itself was reported."""
    found = context.names.libraries[library]
    if found is None or name in found.visible:
        return error_at(span)
    message = f"`{library}` has no `{name}`"
    return context.report.unknown("PE1001", message, span, name, found.own, shown=f"{library}.{{}}")


def check_select(context: Context, node: syntax.Select) -> ir.Expr:
    """`operand.field` and `operand.?field`, and what a library has: `safe.x`."""
    library = library_of(context, node.operand)
    if library is not None:
        found = _named(context, f"{library}.{node.field}", node.span)
        return found or not_in_library(context, library, node.field, node.field_span)
    part = node.operand
    if isinstance(part, syntax.Select) and part.field in _PARTS and library_of(context, part.operand) is None:
        whole = aliased(context, context.check(part.operand))
        if is_error(whole):
            return error_at(node.span)
        if not _has(whole.type, part.field):
            return _in_manifest(context, node, part, whole.type)
        operand = aliased(context, _select(context, part, whole))
    else:
        operand = aliased(context, context.check(node.operand))
    return error_at(node.span) if is_error(operand) else _select(context, node, operand)


def _has(type_: Type, name: str) -> bool:
    content, _ = _content(type_)
    return content.kind is not Kind.OBJECT or _attribute_of(content, name) is not None


def _in_manifest(context: Context, node: syntax.Select, part: syntax.Select, type_: Type) -> ir.Expr:
    """Reports `pod.spec.priority`, which is `pod.priority` here."""
    content, _ = _content(type_)
    path, info = f"{part.field}.{node.field}", object_info(content)
    assert info is not None
    message, span = f"`{content}` has no `{path}`", Span(part.field_span.start, node.field_span.end)
    field = foreign_words.in_manifest(content, path)
    if field is not None:
        return context.failed("PE1002", f"{message}; write `.{field}`", span, replacing(span, field, safe=True))
    hint = foreign_words.written(content, node.field)
    hint = hint or f"; the fields of a manifest stand right behind it, and there are {listed(info.fields)}"
    return context.failed("PE1002", message + hint, span)


def aliased(context: Context, operand: ir.Expr) -> ir.Expr:
    """`let r = pod.requests` is another name for the path: `r.cpu` is `pod.requests.cpu`."""
    if isinstance(operand, ir.LetRef) and operand.type.kind is Kind.OBJECT:
        value = context.definitions.let_value(operand.name)
        if isinstance(value, ir.Field) or (value is not None and value.type == DOMAIN):
            return value
    return operand


def _select(context: Context, node: syntax.Select, operand: ir.Expr) -> ir.Expr:
    """A field of a checked operand. A field of what may be absent is itself optional, and never optional twice."""
    content, absent = _content(operand.type)
    if content.kind is Kind.MAP and content.args[0] == STRING:
        return _lookup(context, node, operand, ir.Const(type=STRING, span=node.field_span, value=node.field))
    known = _attribute_of(content, node.field)
    if known is None:
        return _no_field(context, node, content)
    if absent or known.optional:
        optional = absent or node.optional
        if not optional and key_fact(operand, field_name(node.field, operand)) not in context.facts:
            return _unguarded(context, node, f"has({shown_path(node)})", f".?{node.field}")
        type_ = _flat(known.type) if optional else known.type
        return ir.Select(
            type=type_, span=node.span, **extent(operand), operand=operand, name=node.field, optional=optional
        )
    if node.optional and known.type.kind is not Kind.OPTIONAL:
        message = f"`{node.field}` is always there; write `.{node.field}`"
        between = Span(node.operand.span.end, node.field_span.start)
        context.report.error("PE1013", message, node.field_span, Fix(f"write `.{node.field}`", (Edit(between, "."),)))
    return check_domain_field(operand, known, node.span) or member_of(operand, known, node.span)


def _content(type_: Type) -> tuple[Type, bool]:
    """The type of what a value holds, and whether that may be absent."""
    return (type_.args[0], True) if type_.kind is Kind.OPTIONAL else (type_, False)


def _flat(type_: Type) -> Type:
    return type_ if type_.kind is Kind.OPTIONAL else optional_of(type_)


def _attribute_of(type_: Type, name: str) -> Attribute | None:
    info = object_info(type_)
    return info.fields.get(name) if info else None


def _no_field(context: Context, node: syntax.Select, type_: Type) -> ir.Expr:
    info, remedy = object_info(type_), foreign_words.written(type_, node.field)
    if info is None:
        return context.failed("PE1002", f"{with_article(type_)} has no fields{remedy}", node.field_span)
    message, fields = f"`{type_}` has no field `{node.field}`", info.fields
    key = foreign_words.vendors(node.field) if info.entries is not None else None
    if key is not None:
        read = f"[?{key}].orValue(0)"
        fix = Fix(f"write `{read}`", (Edit(Span(node.operand.span.end, node.field_span.end), read),))
        return context.failed("PE1002", f"{message}; write `{read}`", node.field_span, fix)
    field = next(filter(None, (foreign_words.in_manifest(type_, f"{part}.{node.field}") for part in _PARTS)), None)
    if field is not None:
        fix = replacing(node.field_span, field, safe=True)
        return context.failed("PE1002", f"{message}; write `.{field}`", node.field_span, fix)
    if remedy:
        return context.failed("PE1002", message + remedy, node.field_span)
    hint = f"; it has {listed(info.fields)}"
    if info.entries is not None:
        hint += ', and one of a vendor as `[?"vendor/x"].orValue(0)`'
    elif node.field in _PARTS:
        hint = f"; what a manifest has in it stands right behind the {type_}: {listed(info.fields)}"
    elif "labels" in fields:
        hint = f'; a label is `.labels[?"{node.field}"]`'
    return context.report.unknown("PE1002", message, node.field_span, node.field, fields, otherwise=hint)


def check_index(context: Context, node: syntax.Index, expected: Type | None) -> ir.Expr:
    """`operand[key]` and `operand[?key]`. `expected`: what a value of a map's literal is wanted to be."""
    value = content_of(expected) if expected is not None else None
    wanted = map_of(STRING, value) if value is not None and isinstance(node.operand, syntax.MapLiteral) else None
    operand = aliased(context, context.check(node.operand, wanted))
    if is_error(operand):
        context.check(node.key)
        return error_at(node.span)
    type_, _ = _content(operand.type)
    if is_cluster_list(operand, context.definitions.let_value):
        message = "a list of the cluster has no order, so it has no `[…]`: make one value of it, as `.exists(x, …)`, "
        return context.failed("PE1018", message + "`.size()` and `.map(x, …).sum()` do", node.span)
    wanted = _key_type(type_)
    if wanted is None:
        return context.failed("PE1005", f"{with_article(type_)} takes no `[…]`", node.span)
    key = context.check(node.key, wanted)
    if is_error(key):
        return error_at(node.span)
    if key.type != wanted:
        return context.failed("PE1005", f"the key of {with_article(type_)} is {wanted}, not {key.type}", key.span)
    if type_.kind is Kind.OBJECT:
        return _entry(context, node, operand, key)
    return _lookup(context, node, operand, key)


def _key_type(type_: Type) -> Type | None:
    if type_.kind is Kind.LIST:
        return INT
    if type_.kind is Kind.MAP:
        return type_.args[0]
    info = object_info(type_)
    return STRING if info is not None and info.entries is not None else None


def _entry(context: Context, node: syntax.Index, operand: ir.Expr, key: ir.Expr) -> ir.Expr:
    """An extended resource: `node.free[?"nvidia.com/gpu"]`, a count."""
    content, absent = _content(operand.type)
    info = object_info(content)
    assert info is not None and info.entries is not None
    own = _OWN_FIELDS.get(str(key.value)) if isinstance(key, ir.Const) else None
    if own:
        dot = ".?" if info.fields[own].optional else "."
        return context.failed(
            "PE1006",
            f"`{own}` has a field of its own, with its dimension: write `{dot}{own}`",
            node.span,
            Fix(f"write `{dot}{own}`", (Edit(Span(node.operand.span.end, node.span.end), f"{dot}{own}"),)),
        )
    if key.shape is not Shape.SCALAR:
        return context.failed("PE1011", "the name of a resource may not be read from the node", key.span)
    if not node.optional and not absent:
        return _unguarded(context, node, None, "[?…]")
    is_bytes = isinstance(key, ir.Const) and str(key.value).startswith("hugepages-")
    return _index(operand, key, MEMORY if is_bytes else info.entries, node.span, optional=True)


def _lookup(context: Context, node: syntax.Index | syntax.Select, operand: ir.Expr, key: ir.Expr) -> ir.Expr:
    """A lookup in a map or list: optional, or behind a guard."""
    content, absent = _content(operand.type)
    optional = absent or node.optional
    if not optional and not _guarded(operand, key, context):
        condition = f"{_key_text(key)} in {shown_path(node.operand)}" if content.kind is Kind.MAP else None
        return _unguarded(context, node, condition, "[?…]")
    return _index(operand, key, content.args[-1], node.span, optional=optional)


def _guarded(operand: ir.Expr, key: ir.Expr, context: Context) -> bool:
    if operand.type.kind is Kind.MAP:
        return key_fact(operand, key) in context.facts
    if isinstance(key, ir.Const) and isinstance(key.value, int) and key.value >= 0:
        return size_fact(operand, key.value + 1) in context.facts
    return False


def _index(operand: ir.Expr, key: ir.Expr, value: Type, span: Span, *, optional: bool) -> ir.Index:
    type_ = _flat(value) if optional else value
    return ir.Index(type=type_, span=span, **extent(operand, key), operand=operand, key=key, optional=optional)


def _unguarded(context: Context, node: syntax.Index | syntax.Select, condition: str | None, optional: str) -> ir.Expr:
    """Reports a lookup that may find nothing; the fix gives strings the default ''."""
    what = "an item that may not be there" if condition is None else "a key that may be absent"
    guard = f"guard it with `{condition}`, or " if condition else ""
    message = f"{what}: {guard}write `{optional}` and `.orValue(…)`"
    fix = None
    if isinstance(node, syntax.Index):
        start = node.key.span.start
        fix = Fix("write `[?…]` and `.orValue(…)`", (Edit(Span(start, start), "?"),))
    return context.failed("PE1007", message, node.span, fix)


def check_has(context: Context, node: syntax.Call) -> ir.Expr:
    """`has(operand.field)`: whether a key, or a field that may be absent, is there."""
    argument = node.args[0] if len(node.args) == 1 else None
    if not isinstance(argument, syntax.Select) or argument.optional:
        key = '; a key is asked by `"x" in pod.labels`' if isinstance(argument, syntax.Index) else ""
        return context.failed("PE1016", f"`has` takes a field: `has(pod.labels.app)`{key}", node.span)
    operand = aliased(context, context.check(argument.operand))
    if is_error(operand):
        return error_at(node.span)
    type_, span = operand.type, node.span
    if type_.kind is Kind.MAP and type_.args[0] == STRING:
        name = ir.Const(type=STRING, span=argument.field_span, value=argument.field)
        return ir.Call(type=BOOL, span=span, **extent(operand), function="@in", args=(name, operand))
    known = _attribute_of(type_, argument.field)
    if known is not None and known.optional:
        return ir.Has(type=BOOL, span=span, **extent(operand), operand=operand, name=argument.field)
    selected = _select(context, argument, operand)
    if is_error(selected):
        return error_at(span)
    if selected.type.kind is not Kind.OPTIONAL:
        return context.failed("PE1013", f"`{shown_path(argument)}` is always there", span)
    return ir.Call(type=BOOL, span=span, **extent(selected), function="hasValue", args=(selected,))


def shown_path(expr: syntax.Expr) -> str:
    """A path as written; `…` for what is none."""
    match expr:
        case syntax.Name():
            return expr.name
        case syntax.Select():
            return f"{shown_path(expr.operand)}.{'?' if expr.optional else ''}{expr.field}"
        case _:
            return "…"


def _key_text(key: ir.Expr) -> str:
    if not isinstance(key, ir.Const):
        return "the key"
    return f'"{key.value}"' if key.type == STRING else str(key.value).lower()
